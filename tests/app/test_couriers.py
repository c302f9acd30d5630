"""One courier for each account that can run, going while its link is up, and none for one that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from garra.app.couriers import Couriers, Trade
from garra.core.errors import UserError
from garra.domains.delivery.accounts import LinkKey, Setup
from garra.domains.delivery.draft import Draft, Form
from garra.domains.delivery.link import Doors
from garra.domains.delivery.links import Links
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.replies import Replies
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, Edits, Identity, Limits, Outbound, Pulse, Receive, SendFailed

CHAT = Address("toy", "default", "7", "direct")


class Toy:
    """A platform's channel; its link comes up when `comes` is set."""

    limits = Limits(100)

    def __init__(self, house: House, number: int) -> None:
        self._house, self.number = house, number

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        await self._house.comes.wait()
        pulse.connected(Identity("1", "toy"))
        pulse.alive()
        await asyncio.Event().wait()

    async def send(self, message: Outbound) -> str:
        if self._house.refuses:
            raise SendFailed("auth", "401 the token is no good")
        self._house.sent.append((self.number, message.text))
        return str(len(self._house.sent))

    async def edit(self, message_id: str, message: Outbound) -> None:
        self._house.sent.append((self.number, f"edit {message.text}"))


class House:
    def __init__(self, db: Database, tasks: Tasks) -> None:
        clock = SystemClock()
        self.comes = asyncio.Event()
        self.refuses = False
        self.made = 0
        self.sent: list[tuple[int, str]] = []
        self.refused: list[tuple[LinkKey, str]] = []
        self.outbox = Outbox(db, clock)
        self.links = Links(Doors(self.make, lambda _: self._receive, lambda *_: None, clock, tasks))
        trade = Trade(
            self.outbox, self.links, clock, tasks, self.make, Replies().read, str, lambda *it: self.refused.append(it)
        )
        self.couriers = Couriers(trade)

    def make(self, setup: Setup) -> Toy:
        if setup.account.id == "broken":
            raise UserError("its package is missing")
        self.made += 1
        return Toy(self, self.made)

    async def _receive(self, event: object) -> None: ...

    async def follow(self, *setups: Setup) -> None:
        self.couriers.follow(setups)
        await self.links.apply(setups)

    async def put(self, key: str) -> None:
        await self.outbox.put([Draft(key, CHAT, (Form("plain", f"words {key}"),))])

    async def until(self, done: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not done():  # noqa: ASYNC110 - a test looks at what it was not told of
                await asyncio.sleep(0.01)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    db = Database(tmp_path / "state.db")
    async with Tasks() as tasks:
        made = House(db, tasks)
        yield made
        await made.links.close()
        await made.couriers.close()
    await db.close()


TOY = Setup("toy", Account("default"))


async def test_it_waits_for_the_link_and_sends_by_the_channel_that_serves_now(house: House) -> None:
    await house.put("a")
    await house.follow(TOY)
    assert [each.account for each in house.couriers.running()] == ["default"]
    assert house.sent == []
    house.comes.set()
    await house.until(lambda: house.sent)
    assert house.sent == [(2, "words a")]  # the first was made for its limits, the second serves the link
    stage = house.couriers.stage(CHAT)
    assert stage is not None
    await cast("Edits", stage.channel).edit("1", Outbound("k", CHAT, "b"))
    assert house.sent[-1] == (2, "edit b")
    assert house.couriers.limits(CHAT) == Limits(100)


async def test_an_account_that_is_off_or_gone_has_none(house: House) -> None:
    await house.follow(TOY, Setup("toy", Account("off"), enabled=False), Setup("toy", Account("broken")))
    assert [each.account for each in house.couriers.running()] == ["default"]
    other = replace(CHAT, account="off")
    known = house.couriers.stage(other), house.couriers.limits(other), house.couriers.channel(other)
    assert known == (None, None, None)
    await house.follow()
    assert house.couriers.running() == []
    house.comes.set()
    await house.put("a")
    await asyncio.sleep(0.05)
    assert house.sent == []


async def test_a_platform_that_refuses_the_credential_is_told_and_asked_no_more(house: House) -> None:
    house.refuses = True
    house.comes.set()
    await house.follow(TOY)
    await house.put("a")
    await house.put("b")
    await house.until(lambda: house.refused)
    assert set(house.refused) == {(TOY.key, "401 the token is no good")}  # a link that comes up later is one more try
    assert (await house.outbox.get("b")).state == "pending"
