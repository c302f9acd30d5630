"""What the delivery of messages asks of the state database."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

import msgspec

from garra.io.store.db import Connection

T = TypeVar("T")


class Store(Protocol):
    """As `io.store.db.Database`: `write` returns when committed, with `durable` also when it survives a power cut."""

    async def write(self, work: Callable[[Connection], T], *, durable: bool = False) -> T: ...

    async def read(self, work: Callable[[Connection], T]) -> T: ...


FIELDS: Final = {"updated": "updated_at", "due": "due_at"}
"""Columns that a row's field has another name for."""


def packed(value: Any) -> str:
    """`value` as JSON; what JSON does not know is written as its text, half a surrogate pair as a question mark."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, enc_hook=str)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()
