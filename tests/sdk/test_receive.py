"""What comes in one piece is stored in its order, with one write for all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from garra.core.errors import Unavailable
from garra.domains.delivery.inbox import Inbox
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.sdk.channel import Address, Inbound, Sender, receive_all

CHAT = Address("test", "main", "7", "direct")


async def test_a_hundred_events_take_the_commits_of_a_few(tmp_path: Path) -> None:
    db = Database(tmp_path / "state.db")
    inbox, said = Inbox(db, SystemClock()), list[str]()
    await db.write(lambda connection: connection.set_trace_callback(said.append))
    said.clear()
    events = [Inbound(str(number), "message", CHAT, Sender("1"), str(number)) for number in range(100)]
    assert await receive_all(inbox.accept, events) == (100, None)
    assert said.count("COMMIT") <= 3
    rows = await inbox.pending()
    assert [row.event.id for row in rows] == [event.id for event in events]
    await db.close()


async def test_only_what_stands_before_a_fault_is_told_as_stored() -> None:
    got: list[int] = []

    async def receive(number: int) -> None:
        if number == 2:
            raise Unavailable("the disk is full")
        got.append(number)

    count, fault = await receive_all(receive, [0, 1, 2, 3])
    assert (count, str(fault), got) == (2, "the disk is full", [0, 1, 3])
    assert await receive_all(receive, []) == (0, None)


async def test_one_that_was_cancelled_ends_all() -> None:
    async def receive(_: int) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await receive_all(receive, [0])
