"""Approvals with chats before them: a real outbox, a channel `test` whose owner is 1, and a second one, `far`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from garra.config.sections import Config
from garra.core.approvals import Source
from garra.core.errors import Unavailable
from garra.core.ids import SessionKey
from garra.domains.access.allowlist import Accounts
from garra.domains.delivery.draft import Draft, Form, OutboxRow
from garra.domains.delivery.outbox import Outbox
from garra.sdk.channel import Address, File, Inbound, Limits, Sender
from garra.testing.clock import settle
from garra.turns.cards import Cards, Ports
from garra.turns.places import Places
from garra.turns.places import Ports as PlacePorts
from tests.domains.exec.asking import Desk, desk

CONFIG: dict[str, Any] = {
    "channels": {
        "test": {"allowFrom": ["1", "2"], "groups": {"g": {}, "strict": {"commandLevel": "strict"}}},
        "far": {"allowFrom": ["7"], "groups": {"room": {}}, "execApprovals": {"approvers": ["7"]}},
    },
    "commands": {"ownerAllowFrom": ["test:1"]},
}
DIRECT = Source("test", "default", "1", sender="1")
GROUP = Source("test", "default", "g", sender="2", direct=False)
OWN = Address("test", "default", "1", "direct")
ROOM = 200


@dataclass
class Room:
    """Approvals with a chat before them. `edits` by channel; `own` is the owner's chat; `words` what wrote last."""

    desk: Desk
    outbox: Outbox
    cards: Cards
    config: Config
    own: Address | None = OWN
    files: list[bytes] = field(default_factory=list)
    heard: dict[str, Inbound] = field(default_factory=dict)
    session: Address | None = None
    quiet: set[str] = field(default_factory=set)
    still: set[str] = field(default_factory=set)

    async def sent(self, channel: str = "test") -> list[Draft]:
        return [row.draft for row in await self.outbox.heads(channel, "default")]

    async def shown(self, channel: str = "test") -> list[Draft]:
        while not (found := await self.sent(channel)):
            await settle()
        return found

    async def carry(self, channel: str = "test") -> list[OutboxRow]:
        """The platform takes all that waits."""
        done: list[OutboxRow] = []
        while rows := await self.outbox.claim(await self.outbox.heads(channel, "default")):
            done += [
                await self.outbox.sent(row, f"{row.draft.address.chat}-{len(done) + n}") for n, row in enumerate(rows)
            ]
        return done

    async def every(self) -> list[OutboxRow]:
        return await self.outbox.beginning("out:")

    def wrote(self, chat: str, sender: str, kind: Any = "direct", channel: str = "test") -> None:
        place = Address(channel, "default", chat, kind)
        self.heard[chat] = Inbound("e", "message", place, Sender(sender, "S"))


@asynccontextmanager
async def room(
    folder: Path, source: Source = DIRECT, own: Address | None = OWN, approvals: Any = None, **more: Any
) -> AsyncIterator[Room]:
    """`approvals` is that section of the configuration, `more` are keys of the channel."""
    async with desk(folder, source=source) as d:
        channels = {**CONFIG["channels"], "test": {**CONFIG["channels"]["test"], **more}}
        config = Config.model_validate({**CONFIG, "channels": channels, "approvals": approvals or {}})
        made = Room(d, Outbox(d.db, d.clock), None, config, own)  # type: ignore[arg-type]  # it follows
        made.cards = cards(made)
        d.approvals.routes[:] = [made.cards]
        made.outbox.subscribe(made.cards.heard)
        yield made


def cards(made: Room) -> Cards:
    """The route, as a process makes it."""

    def drafts(key: str, address: Address, words: str) -> list[Draft]:
        pieces = [words[at : at + ROOM] for at in range(0, len(words), ROOM)]
        return [Draft(f"out:{key}:{n}", address, (Form("plain", one),), position=n) for n, one in enumerate(pieces)]

    async def attach(channel: str, name: str, data: bytes) -> File:
        made.files.append(data)
        return File("file", f"{channel}/{name}", name, "text/plain", len(data))

    def limits(address: Address) -> Limits | None:
        if address.channel in made.quiet:
            return None
        return Limits(text=ROOM, edits_per_s=0.0 if address.channel in made.still else 1.0, file_out=20_000)

    ports = Ports(made.outbox, places(made, limits), drafts, limits, attach, made.desk.clock, made.desk.spawn)
    return Cards(made.desk.approvals, ports)


def places(made: Room, limits: Any) -> Places:
    async def owner() -> Address | None:
        return made.own

    async def direct(channel: str, account: str, person: str) -> Address | None:
        if person == "away":
            raise Unavailable("not on this network")
        return Address(channel, account, person if channel == "test" else f"dm-{person}", "direct")

    async def heard(channel: str, account: str, chat: str) -> Inbound | None:
        return made.heard.get(chat)

    async def session(key: SessionKey) -> Address | None:
        return made.session

    sends = lambda address: limits(address) is not None  # noqa: E731 - a port
    return Places(PlacePorts(lambda: made.config, Accounts(lambda: made.config), owner, direct, heard, session, sends))
