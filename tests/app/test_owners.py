"""Who hears of messages that went wrong: the owner the configuration names, never just somebody who was let in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from garra.app.owners import Owners
from garra.config.sections import Config
from garra.domains.access.allowlist import Accounts
from garra.domains.access.pairing import Pairing
from garra.domains.delivery.desk import Running
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.sdk.channel import Address, Channel, Limits, SendFailed
from garra.testing.clock import ManualClock

FAULT = Address("telegram", "default", "77", "group")
ANN, BOB = Address("telegram", "default", "1", "direct"), Address("telegram", "default", "2", "direct")


class Opening:
    """A channel whose direct chats have ids of their own, but for those it cannot reach."""

    async def open_direct(self, user: str) -> Address:
        if user == "away":
            raise SendFailed("gone", "not on this network")
        return Address("discord", "default", f"dm-{user}", "direct")


class House:
    def __init__(self, db: Database) -> None:
        self.pairing = Pairing(lambda name: Shelf(db, name), ManualClock(), lambda below: below // 2)
        self.channels = ["telegram"]

    async def paired(self, sender: str, channel: str = "telegram", chat: str = "") -> None:
        who = {"channel": channel, "account": "default", "sender": sender, "name": "", "handle": "", "chat": chat}
        request = await self.pairing.knock(who)
        assert request
        await self.pairing.approve(channel, request.code)

    async def place(self, about: Address = FAULT, **config: Any) -> Address | None:
        read = Config.model_validate({"channels": {name: {} for name in self.channels}, **config})
        owners = Owners(
            lambda: read,
            self.pairing,
            Accounts(lambda: read),
            lambda: [Running(name, "default", Limits(1000)) for name in self.channels],
            lambda address: cast("Channel", Opening()) if address.channel == "discord" else None,
        )
        return await owners.elsewhere(about)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    db = Database(tmp_path / "garra.db")
    await db.open()
    made = House(db)
    await made.pairing.load()
    yield made
    await db.close()


def owned(*entries: str) -> dict[str, Any]:
    return {"commands": {"ownerAllowFrom": list(entries)}}


async def test_the_first_who_was_let_in_is_told_nothing_when_somebody_else_is_the_owner(house: House) -> None:
    await house.paired("2", chat="2")
    await house.paired("1", chat="1")
    assert await house.place(**owned("telegram:1")) == ANN


async def test_an_owner_who_never_wrote_is_reached_by_id(house: House) -> None:
    await house.paired("2", chat="2")
    assert await house.place(**owned("telegram:1")) == ANN


async def test_an_owner_on_a_channel_that_does_not_run_leaves_nobody(house: House) -> None:
    await house.paired("2", chat="2")
    assert await house.place(**owned("irc:ann")) is None


async def test_without_an_owner_one_of_several_is_not_told_of_the_others(house: House) -> None:
    await house.paired("2", chat="2")
    assert await house.place() == BOB
    await house.paired("1", chat="1")
    assert await house.place() is None


async def test_links_make_one_person_of_two_ids(house: House) -> None:
    house.channels.append("discord")
    await house.paired("2", chat="2")
    await house.paired("9", "discord", "dm-9")
    assert await house.place() is None
    links = {"identityLinks": {"bob": ["telegram:2", "discord:9"]}}
    assert await house.place(session=links) == Address("discord", "default", "dm-9", "direct")


async def test_a_channel_opens_the_direct_chat_where_none_is_known_or_the_next_is_taken(house: House) -> None:
    house.channels.append("discord")
    assert await house.place(**owned("discord:9", "telegram:1")) == Address("discord", "default", "dm-9", "direct")
    assert await house.place(**owned("discord:away", "telegram:1")) == ANN


async def test_a_chat_is_not_told_of_itself(house: House) -> None:
    await house.paired("1", chat="1")
    assert await house.place(ANN) is None
