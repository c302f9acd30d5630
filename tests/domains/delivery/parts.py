"""What the tests of delivery share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from garra.domains.delivery.draft import Draft, Form
from garra.io.store.db import Database
from garra.sdk.channel import Address, Inbound, Sender
from garra.testing.clock import ManualClock


def address(chat: str = "7", thread: str = "", channel: str = "test", account: str = "main") -> Address:
    return Address(channel, account, chat, "direct", thread=thread)


def inbound(event_id: str = "1", text: str = "hello", chat: str = "7", **more: Any) -> Inbound:
    more.setdefault("sender", Sender("u1", "Ann"))
    more.setdefault("address", address(chat))
    return Inbound(event_id, "message", text=text, **more)


def draft(key: str = "out:r1:0", text: str = "hi", chat: str = "7", **more: Any) -> Draft:
    more.setdefault("address", address(chat))
    more.setdefault("forms", (Form("plain", text),))
    return Draft(key, **more)


def database(folder: Path) -> Database:
    return Database(folder / "state.db")


def clock() -> ManualClock:
    return ManualClock()
