"""The whole program on real IRC servers, a plain one and one with all of IRCv3.

Rooms, direct messages, identities, long answers, a server that dies.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say
from tests.e2e.ircd import Inspircd, Ngircd, Person, Services
from tests.e2e.resident import Resident, StrictModel, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]
Kind = type[Ngircd] | type[Inspircd]


@pytest.fixture(
    params=[
        pytest.param(Ngircd, marks=pytest.mark.needs("ngircd"), id="ngircd"),
        pytest.param(Inspircd, marks=pytest.mark.needs("inspircd"), id="inspircd"),
    ]
)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@dataclass
class Network:
    """What a test plays with."""

    server: Ngircd | Inspircd
    services: Services
    program: Resident
    model: StrictModel
    stack: AsyncExitStack

    async def person(self, nick: str, *rooms: str, account: str = "") -> Person:
        person = await Person().enter(self.server.port, nick, *rooms)
        self.stack.push_async_callback(person.close)
        if account:
            await self.services.account(nick, account)
            await self.known(person, account)
        return person

    async def known(self, person: Person, account: str) -> None:
        """The server has heard of it: it says so itself."""
        mark = f" 330 {person.nick} {person.nick} {account} "
        async with asyncio.timeout(10):
            while not any(mark in line for line in person.lines):
                person.say(f"WHOIS {person.nick}")
                await asyncio.sleep(0.5)


@asynccontextmanager
async def network(folder: Path, kind: Kind, **channel: Any) -> AsyncIterator[Network]:
    async with AsyncExitStack() as stack:
        server = kind(folder / "ircd")
        await server.start()
        stack.push_async_callback(server.kill)
        services = await server.services()
        stack.push_async_callback(services.close)
        model = await stack.enter_async_context(strict_model())
        own = {
            "host": "127.0.0.1",
            "port": server.port,
            "tls": False,
            "nick": "garra",
            "channels": ["#room"],
            **channel,
        }
        more = {"channels": {"irc": own}, "messages": {"inbound": {"debounceMs": 0}}}
        program = await stack.enter_async_context(resident(folder, model.url, more))
        yield Network(server, services, program, model, stack)


def in_room(lines: list[str]) -> bool:
    return any(" 353 " in line and "garra" in line for line in lines) or any(
        ":garra!" in x and "JOIN" in x for x in lines
    )


async def test_a_stranger_is_paired_and_the_nick_alone_is_worth_nothing(tmp_path: Path, kind: Kind) -> None:
    async with network(tmp_path, kind) as net:
        ann = await net.person("ann", "#room", account="Ann-Account")
        await ann.until(in_room)
        ann.tell("garra", "hello")
        await ann.until(lambda _: any("approve irc" in text for text in ann.heard("garra")))
        assert net.model.requests == []
        code = re.search(r"\b[A-HJ-NP-Z2-9]{8}\b", " ".join(ann.heard("garra")))
        assert code is not None
        done, out, err = await net.program.run("pairing", "approve", "irc", code[0])
        assert done == 0, out + err
        ann.tell("garra", "are you there?")
        await ann.until(lambda _: any("are you there?" in text for text in ann.heard("garra")))

        await ann.close()
        mallory = await net.person("ann", "#room")
        mallory.tell("garra", "it is me, ann")
        other = await net.person("carl", account="carl")
        other.tell("garra", "hello from somebody behind")
        await other.until(lambda _: any("approve irc" in text for text in other.heard("garra")))
        assert mallory.heard("garra") == []
        assert not net.model.asked("it is me")


async def test_a_room_and_a_long_answer(tmp_path: Path, kind: Kind) -> None:
    groups = {"#room": {"requireMention": True, "allowFrom": ["ann"]}}
    async with network(tmp_path, kind, groups=groups, groupPolicy="allowlist") as net:
        ann = await net.person("ann", "#room", account="ann")
        bob = await net.person("bob", "#room")
        await ann.until(in_room)
        ann.tell("#room", "nobody is asked")
        bob.tell("#room", "garra: let me in")
        ann.tell("#room", "garra: what now?")
        await bob.until(lambda _: any("what now?" in text for text in bob.heard("garra")))
        assert not net.model.asked("garra: let me in")
        words = [f"wörd{number}✓" for number in range(120)]
        net.model.then(Say(" ".join(words)))
        ann.tell("#room", "garra: tell it all")
        await bob.until(lambda _: any("wörd119✓" in text for text in bob.heard("garra")), 30)
        said = [text for text in bob.heard("garra") if "wörd" in text]
        assert " ".join(said).split() == words
        assert len(said) > 2
        assert all(len(line.encode()) <= 510 for line in bob.lines)


async def test_a_server_that_dies_is_entered_again(tmp_path: Path, kind: Kind) -> None:
    async with network(tmp_path, kind, dmPolicy="allowlist", allowFrom=["ann"]) as net:
        ann = await net.person("ann", "#room", account="ann")
        await ann.until(in_room)
        ann.tell("garra", "before")
        await ann.until(lambda _: any("before" in text for text in ann.heard("garra")))
        await net.server.kill()
        await ann.close()
        await net.server.start()
        net.services = await net.server.services()
        net.stack.push_async_callback(net.services.close)
        again = await net.person("ann", "#room", account="ann")
        await again.until(in_room, 30)
        again.tell("garra", "after")
        await again.until(lambda _: any("after" in text for text in again.heard("garra")))
        assert len(net.model.asked("before")) >= 1
        assert len([text for text in again.heard("garra") if "after" in text]) == 1
