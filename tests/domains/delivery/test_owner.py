"""The owner hears of what does not arrive, elsewhere, once for each cause."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from garra.domains.delivery.inbox import Inbox
from garra.domains.delivery.ledger import Ledger
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.owner import Owner
from garra.domains.delivery.timeline import Timeline
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.sdk.channel import Address, SendFailed
from garra.testing.clock import ManualClock
from tests.domains.delivery.parts import address, clock, database, draft, inbound

HOME = Address("irc", "main", "owner", "direct")


class House:
    """Both boxes and an owner who is told at HOME."""

    def __init__(self, db: Database, tasks: Tasks) -> None:
        self.time: ManualClock = clock()
        self.inbox, self.outbox, self.tasks = Inbox(db, self.time), Outbox(db, self.time), tasks
        self.home: Address | None = HOME
        self.ledger = Ledger(db, self.inbox, self.outbox, Timeline(db, self.time))
        self.owner = Owner(self.inbox, self.outbox, self._where, clock=self.time, spawn=tasks)

    async def _where(self, about: Address) -> Address | None:
        return self.home

    async def send(self, key: str, fault: SendFailed) -> None:
        await self.outbox.put([draft(key, f"secret words {key}", address=address(thread="5"))])
        (row,) = await self.outbox.claim(await self.outbox.heads("test", "main"))
        await self.outbox.failed(row, fault)

    async def told(self) -> list[str]:
        """What the owner has got since the last look."""
        await self.tasks.close(5)
        said = []
        while heads := await self.outbox.heads("irc", "main"):
            for row in await self.outbox.claim(heads):
                said.append(row.draft.text)
                await self.outbox.sent(row, "1")
        return said


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    db, tasks = database(tmp_path), Tasks()
    await db.open()
    made = House(db, tasks)
    yield made
    made.owner.close()
    await tasks.close()
    await db.close()


async def test_a_dead_answer_is_told_without_its_words(house: House) -> None:
    await house.send("a", SendFailed("gone", "403 bot was kicked"))
    (words,) = await house.told()
    assert words == (
        "A message to test chat 7, thread 5 was not delivered: the chat is gone, or the bot is no longer in it: "
        "403 bot was kicked.\nSee it: garra messages show a\nSend it again: garra messages retry a"
    )


@pytest.mark.req("MSG-02")
async def test_an_answer_that_may_have_arrived_is_told(house: House) -> None:
    await house.send("a", SendFailed("unsure", "cut"))
    (words,) = await house.told()
    assert "may not have arrived: cut. It is not sent again by itself." in words


async def test_one_cause_is_told_once_an_hour(house: House) -> None:
    for key in "abc":
        await house.send(key, SendFailed("refused", "blocked by the user"))
    assert len(await house.told()) == 1
    await house.time.advance(3600)
    await house.send("d", SendFailed("refused", "blocked by the user"))
    assert len(await house.told()) == 1


async def test_a_message_that_could_not_be_answered_is_told(house: House) -> None:
    row_id = (await house.inbox.accept(inbound())).row_id
    await house.inbox.claim(row_id)
    await house.inbox.adopt(row_id, "run", "agent:main:main")
    await house.inbox.bury(row_id, "no model answers")
    (words,) = await house.told()
    assert words.startswith("A message from Ann (test chat 7) was not answered: no model answers.")
    assert f"garra messages retry {row_id}" in words


async def test_of_those_who_were_never_let_in_nothing_is_told(house: House) -> None:
    row_id = (await house.inbox.accept(inbound(), stranger=True)).row_id
    await house.inbox.bury(row_id, "over 500 messages of its chat were waiting")
    assert await house.told() == []


async def test_strangers_that_are_crowded_out_say_nothing_to_the_owner_by_their_names(house: House) -> None:
    for chat in ("7", "8", "9"):
        event = inbound(chat=chat)
        shown = replace(event.sender, name="Bank\nyour account is locked: https://evil.example")
        row_id = (await house.inbox.accept(replace(event, sender=shown))).row_id
        await house.inbox.bury(row_id, "over 500 messages of its chat were waiting")
    (words,) = await house.told()
    assert words.startswith("A message from u1 (test chat 7) was not answered: over 500 messages")
    assert "evil" not in words


async def test_a_notice_that_dies_and_what_the_owner_dropped_are_told_to_nobody(house: House) -> None:
    await house.outbox.put([draft("n", purpose="notice")])
    await house.outbox.bury("n", "no such account")
    await house.outbox.put([draft("d")])
    await house.outbox.drop("d")
    assert await house.told() == []


async def test_where_there_is_no_place_nothing_is_written(house: House) -> None:
    house.home = None
    await house.send("a", SendFailed("gone", "403"))
    assert await house.told() == []


async def test_what_a_process_died_before_telling_is_told_by_the_next_and_no_more(house: House) -> None:
    house.owner.close()
    await house.send("a", SendFailed("gone", "403"))
    row_id = (await house.inbox.accept(inbound())).row_id
    await house.inbox.bury(row_id, "no model")
    await house.time.advance(3 * 3600)
    for _ in range(2):
        await house.owner.start(house.ledger)
    assert len(await house.told()) == 2
    await house.owner.start(house.ledger)
    assert await house.told() == []
    await house.time.advance(25 * 3600)
    await house.owner.start(house.ledger)
    assert await house.told() == []
