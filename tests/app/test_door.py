"""Strangers can fill neither the disk nor the line: what they say is kept only so far, what others say always."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from garra.app.door import TELL_S, Door
from garra.config.sections import Config
from garra.core import strangers
from garra.domains.access.allowlist import Accounts
from garra.domains.access.pairing import Pairing
from garra.domains.delivery.accounts import Setup
from garra.domains.delivery.inbox import Inbox, InboxRow
from garra.domains.delivery.ledger import Ledger, Query
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.timeline import Timeline
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, Ignored, Inbound, Media, Sender
from garra.testing.clock import ManualClock, settle

RULES = {"test": {"allowFrom": ["42"], "groups": {"-5": {"allowFrom": ["77"]}}}}
SETUP = Setup("test", Account("default"))


class House:
    def __init__(self, db: Database, tasks: Tasks) -> None:
        self.time = ManualClock()
        self.config = Config.model_validate({"channels": RULES})
        self.inbox = Inbox(db, self.time)
        outbox, timeline = Outbox(db, self.time), Timeline(db, self.time)
        self.ledger = Ledger(db, self.inbox, outbox, timeline)
        self.pairing = Pairing(lambda name: Shelf(db, name), self.time, random.Random(1).randrange)
        rules = Accounts(lambda: self.config)
        self.door = Door(self.inbox, rules, self.pairing, lambda _: "bot", self.time, tasks)
        self.receive = self.door.receive(SETUP)
        self.number = 0

    async def say(self, user: str, chat: str = "", **more: Any) -> None:
        self.number += 1
        address = Address("test", "default", chat or user, "group" if chat else "direct")
        more.setdefault("event", "message")
        await self.receive(Inbound(str(self.number), address=address, sender=Sender(user), text="x", **more))

    async def rows(self, why: str | None = None) -> list[InboxRow]:
        found = [row for row in await self.ledger.rows(Query("in", limit=10_000)) if isinstance(row, InboxRow)]
        return [row for row in found if why is None or row.why == why]

    async def senders(self) -> list[str]:
        return [row.event.sender.id for row in await self.rows() if isinstance(row.event, Inbound)]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    db = Database(tmp_path / "state.db")
    await db.open()
    async with Tasks() as tasks:
        yield House(db, tasks)
    await db.close()


async def test_of_one_strangers_flood_a_little_is_stored_and_the_rest_is_one_line(house: House) -> None:
    for _ in range(1_000):
        await house.say("666")
    await house.say("42")
    await house.say("7")
    senders = await house.senders()
    assert (senders.count("666"), senders.count("42"), senders.count("7")) == (strangers.OF_ONE, 1, 1)
    await settle()
    await house.time.advance(TELL_S)
    left_out = f"strangers: {1_000 - strangers.OF_ONE} more messages of strangers were not kept"
    while not await house.rows(left_out):
        await settle()
    await house.time.advance(TELL_S)
    assert len(await house.rows()) == strangers.OF_ONE + 3


async def test_of_many_strangers_so_much_is_stored_as_of_one_account(house: House) -> None:
    for number in range(1_000):
        await house.say(str(1_000 + number), event="message" if number % 2 else "edit")
    for number in range(20):
        await house.receive(Ignored(f"i{number}", None))
    assert len(await house.rows()) == strangers.OF_ALL
    await house.time.advance(60)
    await house.say("1000")
    assert len(await house.rows()) >= strangers.OF_ALL + 1


async def test_of_those_whom_any_list_names_everything_is_stored(house: House) -> None:
    await house.pairing.knock({"channel": "test", "account": "default", "sender": "9", "chat": "9"})
    await house.pairing.approve_request("test:default:9")
    for user, chat in (("42", ""), ("9", ""), ("77", "-5"), ("42", "-999"), ("9", "-999")):
        for _ in range(250):
            await house.say(user, chat)
    for _ in range(250):
        await house.say("66", own=True)
    assert len(await house.rows()) == 1_500
    assert {row.why for row in await house.rows()} == {""}


async def test_a_group_that_is_open_to_all_is_not_held_back(house: House) -> None:
    house.config = Config.model_validate({"channels": {"test": {"groupPolicy": "open", "groups": {"-5": {}}}}})
    for _ in range(300):
        await house.say("66", "-5")
    assert len(await house.rows()) == 300


async def test_an_event_that_is_not_what_it_says_is_left_to_the_inbox(house: House) -> None:
    odd: Any = [1]
    address = Address("test", "default", "5", "direct")
    await house.receive(Inbound("1", "message", address, Sender(odd), "x"))
    await house.receive(Inbound("2", "message", replace(address, channel=odd), Sender("1"), "x"))
    assert len(await house.rows()) == 2


async def test_of_who_is_not_let_in_no_word_is_kept_and_the_rest_goes_after_a_day(house: House) -> None:
    await house.say("666", media=(Media("image", "f"),), raw={"update": "x"}, reply_text="y")
    await house.say("42")
    mine, theirs = await house.rows()
    assert (theirs.why, theirs.state, theirs.event.raw) == ("stranger", "pending", {"update": "x"})
    for row, why in ((theirs, "not-paired"), (mine, "answered")):
        await house.inbox.claim(row.id)
        await house.inbox.done(row.id, why)
    [kept] = await house.rows("not-paired")
    assert isinstance(kept.event, Inbound)
    assert (kept.event.text, kept.event.media, kept.event.raw, kept.event.reply_text) == ("", (), None, "")
    assert (kept.event.id, kept.event.sender, kept.event.address.chat) == ("1", Sender("666"), "666")
    assert await house.ledger.sweep(house.time.now_ms() + 23 * 3_600_000) == 0
    assert await house.ledger.sweep(house.time.now_ms() + 25 * 3_600_000) == 1
    [left] = await house.rows()
    assert isinstance(left.event, Inbound)
    assert (left.id, left.event.text) == (mine.id, "x")


async def test_a_stranger_who_is_crowded_out_leaves_no_word_either(house: House) -> None:
    await house.say("666")
    [row] = await house.rows()
    dead = await house.inbox.bury(row.id, "over 500 messages of its chat were waiting")
    [kept] = await house.rows()
    assert isinstance(kept.event, Inbound)
    assert (dead.why, kept.event.text) == ("stranger: over 500 messages of its chat were waiting", "")
    assert await house.ledger.sweep(house.time.now_ms() + 25 * 3_600_000) == 1


async def test_who_was_let_in_meanwhile_is_no_stranger_any_more(house: House) -> None:
    await house.say("666")
    [row] = await house.rows()
    await house.inbox.claim(row.id)
    await house.inbox.adopt(row.id, "run", "agent:main:main")
    dead = await house.inbox.bury(row.id, "no model answers")
    [kept] = await house.rows()
    assert isinstance(kept.event, Inbound)
    assert (dead.why, kept.event.text) == ("no model answers", "x")
