"""The reading loop: sessions begun, resumed and begun anew; each event stored before its number counts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from garra.builtin.channels.discord import faults, gateway, missed
from garra.builtin.channels.discord.api import Api, Refused, seconds
from garra.builtin.channels.discord.codec import Event, Reader
from garra.builtin.channels.discord.gateway import Gateway, Over, Told
from garra.builtin.channels.discord.position import Last, Position, position
from garra.builtin.channels.discord.settings import Settings
from garra.builtin.channels.discord.world import World
from garra.core.value import frozen
from garra.sdk.channel import Identity, Ignored, Inbound, LinkLost, Ports, Pulse, receive_all

STORED = frozenset(
    {
        "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE",
        "INTERACTION_CREATE",
    }
)  # fmt: skip
"""What somebody did; all else only tells how the servers look."""
_TRIES = 3

Take = Callable[[Event, Inbound | Ignored], Awaitable[None]]
"""Returns when the event is stored."""


@frozen
class Parts:
    """What reading works with."""

    own: Settings
    api: Api
    world: World
    reader: Reader
    ports: Ports
    take: Take


class Reading:
    """One account's, until cancelled. `settled`: what was missed before its first connection is stored."""

    def __init__(self, parts: Parts, pulse: Pulse) -> None:
        self._parts, self._pulse = parts, pulse
        self.here = Position()
        self.settled = asyncio.Event()
        self._up = False

    async def run(self) -> None:
        """Raises LinkLost and LinkRefused."""
        self.here = position(await self._parts.ports.cursor.get())
        if not self.here.resumes(self._parts.own.intents):
            self.here = self.here.ended()
        vain = 0
        while True:
            self._up = False
            over = await self._connection()
            if over.anew:
                self.here = self.here.ended()
            if over.why is not None:
                await self._save()
                raise over.why
            vain = 0 if self._up else vain + 1
            if vain >= _TRIES:
                raise LinkLost("Discord ends each connection before it begins")
            if over.anew or vain:
                await self._parts.ports.clock.sleep(1.0 + random.random())

    async def _connection(self) -> Over:
        """One connection to its end."""
        parts = self._parts
        link = await self._opened()
        try:
            parts.world.me = self.here.bot
            await link.begin(parts.own, self.here)
            while True:
                if (over := await self._batch(link)) is not None:
                    return over
        finally:
            await link.close()

    async def _opened(self) -> Gateway:
        """At the address the session is kept at; where nobody answers there, at the common one."""
        parts = self._parts
        if self.here.session:
            try:
                return await gateway.opened(self.here.url, parts.own, parts.ports, self._pulse)
            except LinkLost:
                pass
        return await gateway.opened(await self._address(), parts.own, parts.ports, self._pulse)

    async def _address(self) -> str:
        """Where the gateway is. Raises LinkLost when Discord allows no new session now."""
        try:
            found = await self._parts.api.call("GET", "/gateway/bot")
            url, limit = str(found["url"]), found.get("session_start_limit") or {}
        except Refused as refused:
            raise faults.link_lost(refused) from None
        except (KeyError, TypeError, AttributeError):
            raise LinkLost("Discord does not say where its gateway is") from None
        if not self.here.session and limit.get("remaining") == 0:
            wait = seconds(limit.get("reset_after"), 0.001)
            raise LinkLost("Discord allows this bot no more sessions today", details={"retryAfterS": wait})
        return url

    async def _batch(self, link: Gateway) -> Over | None:
        """Store what came, then where we stand. What was stored before a fault stays confirmed."""
        before, together = self.here, list[Told]()
        try:
            for told in await link.next():
                if isinstance(told, Told) and told.name in STORED and self._up:
                    together.append(told)
                    continue
                await self._said(together)
                together = []
                if isinstance(told, Over):
                    return told
                await self._told(told)
                self._counts(told)
            await self._said(together)
        finally:
            if self.here is not before:
                await self._save()
                link.stored = self.here.seq
        return None

    def _counts(self, told: Told) -> None:
        if told.seq > self.here.seq:
            self.here = replace(self.here, seq=told.seq)

    async def _said(self, together: Sequence[Told]) -> None:
        """Store what somebody did, with one write; each counts when it is stored."""
        read = [await self._read(told.name, told.body, self._mark(told.seq)) for told in together]
        stored, fault = await receive_all(lambda one: self._parts.take(*one), read)
        for told, (event, found) in zip(together[:stored], read, strict=False):
            self._stored(event, found)
            self._counts(told)
        if fault is not None:
            raise fault

    async def _save(self) -> None:
        await self._parts.ports.cursor.set(self.here.text())

    # ---- events

    async def _told(self, told: Told) -> None:
        body = told.body
        if told.name == "READY":
            await self._ready(body)
            return
        if not self._up:
            self._connected()  # the session goes on: what it repeats is stored under the name it was heard by before
        if told.name == "RESUMED":
            self.settled.set()
        elif told.name in STORED:
            await self._store(told.name, body, self._mark(told.seq))
        elif isinstance(body, dict):
            self._parts.world.told(told.name, body)
            if told.name == "GUILD_CREATE":
                await self._server(str(body.get("id")))

    async def _ready(self, body: Any) -> None:
        """A new session: what the chats said since the last one is asked for before anything of it is stored."""
        try:
            begun = self.here.begun(body, self._parts.own.intents)
        except (KeyError, TypeError, AttributeError):
            raise LinkLost("Discord's READY does not say who we are") from None
        self.here, self._parts.world.me = begun, begun.bot
        self._connected()
        for chat, last in tuple(begun.chats.items()):
            await self._catch_up(chat, last)
        self.settled.set()

    def _connected(self) -> None:
        self._up = True
        here = self.here
        self._pulse.connected(Identity(here.bot, here.name, here.handle))

    async def _server(self, guild: str) -> None:
        """A server comes into sight: the channels that nobody had spoken in before are looked through too."""
        if guild not in self.here.due:
            return
        for chat, last in missed.unread(self._parts.world, guild, self.here) if self.here.since else ():
            await self._catch_up(chat, last)
        self.here = replace(self.here, due=tuple(each for each in self.here.due if each != guild))

    async def _catch_up(self, chat: str, last: Last) -> None:
        parts = self._parts
        async for message in missed.said(parts.world, parts.api, chat, last, now_ms=parts.ports.clock.now_ms()):
            await self._store("MESSAGE_CREATE", message, f"message:{message.get('id')}")

    async def _store(self, name: str, body: Any, mark: str) -> None:
        event, found = await self._read(name, body, mark)
        await self._parts.take(event, found)
        self._stored(event, found)

    async def _read(self, name: str, body: Any, mark: str) -> tuple[Event, Inbound | Ignored]:
        parts = self._parts
        event = Event(name, body, mark)
        return event, parts.reader.read(event, await parts.world.myself(body), await parts.world.room(body))

    def _stored(self, event: Event, found: Inbound | Ignored) -> None:
        if event.name == "MESSAGE_CREATE" and isinstance(found, Inbound):
            self.here = self.here.heard(found.address.chat, Last(found.id, found.address.guild))
            if found.own and isinstance(nonce := event.body.get("nonce"), str):
                self.here = self.here.arrived(nonce, found.id)

    def _mark(self, seq: int) -> str:
        """A name for an event without one: the same when the session repeats it."""
        return f"event:{sha256(self.here.session.encode()).hexdigest()[:12]}:{seq}"
