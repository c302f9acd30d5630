"""One XMPP account: `sdk.channel.Channel`, with edits, reactions, typing and files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any

from garra.builtin.channels.xmpp import outgoing
from garra.builtin.channels.xmpp.codec import CHANNEL, joined
from garra.builtin.channels.xmpp.files import Store, fetched
from garra.builtin.channels.xmpp.outgoing import Stanza
from garra.builtin.channels.xmpp.rooms import Rooms
from garra.builtin.channels.xmpp.session import QUIET_S, Ground, Session
from garra.builtin.channels.xmpp.settings import settings
from garra.builtin.channels.xmpp.wire import Wire
from garra.core.errors import ToolFailed
from garra.sdk.channel import (
    Account,
    Address,
    File,
    Identity,
    Limits,
    LinkLost,
    LinkRefused,
    Media,
    Outbound,
    Ports,
    Pulse,
    Receive,
    SendFailed,
)


class Xmpp:
    """An account of ours. Making it touches no network."""

    def __init__(self, account: Account, ports: Ports) -> None:
        self._account, self._ports = account, ports
        own = self._own = settings(account)
        self._session: Session | None = None
        self._store: Store | None = None
        self._numbers = count(ports.clock.now_ms())
        self.limits = Limits(
            text=own.text,
            formats=("styling", "plain"),
            per_second=5.0,
            per_chat_s=0.5,
            file_in=own.room,
            file_out=own.room,
            edits_per_s=0.5,
            beat_s=QUIET_S,
        )

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        own, ports = self._own, self._ports
        if ports.dial is None:
            raise LinkRefused("this host opens no connections but HTTP")
        if "@" not in own.jid:
            raise LinkRefused(f"{own.jid[:80]!r} is no address of XMPP; set channels.xmpp.jid")
        if not own.password:
            raise LinkRefused(own.password.missing or "no password: set channels.xmpp.password")
        wire = Wire(own, Rooms(pulse.note))
        wire.heard = pulse.alive
        session = Session(wire, Ground(self._account.id, own, ports.clock, ports.cursor), pulse)
        try:
            await wire.open(ports.dial, ports.spawn)
            await session.settle()
            self._session, self._store = session, Store(wire, ports.http, own.via)
            pulse.connected(Identity(own.jid, own.nick, own.jid))
            await session.run(receive)
        finally:
            self._session = self._store = None
            wire.close()

    # ---- sending

    async def send(self, message: Outbound) -> str:
        """The words, and each file behind them; the id of the first."""
        wire = self._up().wire
        urls = [await self._uploaded(file) for file in message.files]
        ids = []
        for stanza in outgoing.spoken(message, urls):
            try:
                ids.append(await self._said(wire, stanza, message.address))
            except SendFailed as failed:
                if ids and failed.fault == "passing":  # a part of it is there already
                    raise SendFailed("unsure", failed.message) from None
                raise
        return ids[0]

    async def edit(self, message_id: str, message: Outbound) -> None:
        await self._said(self._up().wire, outgoing.change(message_id, message, next(self._numbers)), message.address)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        await self._said(self._up().wire, outgoing.reaction(address, message_id, emoji, next(self._numbers)), address)

    async def type(self, address: Address) -> None:
        try:
            self._up().wire.send(outgoing.typing(address, next(self._numbers)).xml)
        except LinkLost:
            return

    async def open_direct(self, user: str) -> Address:
        """A person is their bare address."""
        address = Address(CHANNEL, self._account.id, user.strip().partition("/")[0].lower(), "direct")
        outgoing.target(address)
        return address

    def _up(self) -> Session:
        if self._session is None:
            raise SendFailed("passing", "there is no connection")
        return self._session

    async def _said(self, wire: Wire, stanza: Stanza, address: Address) -> str:
        group = address.kind != "direct"
        if group and address.chat not in wire.rooms.nicks:
            raise SendFailed("gone", f"the bot is not in the room {address.chat}")
        return joined(stanza.id, await wire.confirmed(stanza, group=group))

    async def _uploaded(self, file: File) -> str:
        media, store = self._ports.media, self._store
        if media is None or store is None:
            raise SendFailed("refused" if media is None else "passing", "no file can be sent now")
        if file.size > self._own.room:
            raise SendFailed("too_large", f"{file.name} is over {self._own.room / 1e6:.0f} MB")
        try:
            data = await asyncio.to_thread(media.read, file.path, self._own.room)
        except ToolFailed as fault:
            raise SendFailed("refused", f"{file.name} cannot be read: {fault.message}") from None
        return await store.put(file, data)

    # ---- files and facts

    def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        """The bytes of a file; its address is somebody else's word, so only public ones are reached."""
        http = self._ports.public or self._ports.http
        return fetched(http, self._own.via, media, min(limit, self._own.room))

    def inspect(self) -> Mapping[str, Any]:
        """What is known without asking the server."""
        own, session = self._own, self._session
        return {
            "jid": own.jid,
            "server": f"{own.host}:{own.port} ({own.security})",
            "nick": own.nick,
            "passwordSet": bool(own.password),
            **(session.told() if session else {"rooms": [], "archive": None}),
        }
