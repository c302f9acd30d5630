"""One connection to Discord's gateway: greeted, kept alive by heartbeats, read into a queue.

A heartbeat tells Discord the last event that is stored here, not the last that arrived; what was not stored is what a
resumed session repeats.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from garra.builtin.channels.discord import faults
from garra.builtin.channels.discord.position import Position
from garra.builtin.channels.discord.settings import Settings
from garra.core.errors import Unavailable
from garra.core.value import frozen
from garra.sdk.channel import LinkLost, LinkRefused, Ports, Pulse
from garra.sdk.encoding import encoded, parsed
from garra.sdk.ports import Task, WebSocket

DISPATCH, BEAT, IDENTIFY, RESUME, RECONNECT, INVALID, HELLO, BEATEN = 0, 1, 2, 6, 7, 9, 10, 11
WAITING = 5_000
"""So many events may wait to be stored; then no more is read."""
_HELLO_S = 20.0
_KEEP = 4_000
"""Closed so, Discord keeps the session; 1000 and 1001 would end it."""
_FRAME = 64 << 20


@frozen
class Over:
    """The connection has ended. `why` is None where Discord only wants a new one; `anew`: with a new session."""

    why: LinkLost | LinkRefused | None = None
    anew: bool = False


@frozen
class Told:
    """A dispatch: its number in the session, its name, its body."""

    seq: int
    name: str
    body: Any


class Gateway:
    """A connection that is open. `next` gives what came; `stored` is the number heartbeats tell."""

    def __init__(self, socket: WebSocket, ports: Ports, pulse: Pulse) -> None:
        self._socket, self._ports, self._pulse = socket, ports, pulse
        self._queue: asyncio.Queue[Told | Over] = asyncio.Queue(WAITING)
        self._tasks: list[Task] = []
        self._answered = True
        self._ended: Over | None = None
        self.stored = 0

    async def begin(self, own: Settings, here: Position) -> None:
        """Say who we are, or go on with the session of `here`. Raises LinkLost and LinkRefused."""
        hello = await self._frame(_HELLO_S)
        if not isinstance(hello, Over) and hello.get("op") != HELLO:
            hello = Over(LinkLost("Discord's gateway does not say hello"))
        if isinstance(hello, Over):
            raise hello.why or LinkLost("Discord's gateway wants another connection")
        every = float((hello.get("d") or {}).get("heartbeat_interval") or 41_250) / 1000
        self.stored = here.seq
        await self._say(RESUME if here.session else IDENTIFY, _resume(own, here) if here.session else _identify(own))
        self._tasks = [
            self._ports.spawn(self._read(every), "discord gateway"),
            self._ports.spawn(self._beat(every), "discord heartbeat"),
        ]

    async def next(self) -> list[Told | Over]:
        """What came, at least one; an `Over` is the last."""
        found = [await self._queue.get()]
        while not self._queue.empty():
            found.append(self._queue.get_nowait())
        return found

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self._socket.close(_KEEP)

    # ---- its tasks

    async def _read(self, every: float) -> None:
        while self._ended is None:
            frame = await self._frame(2 * every)
            if isinstance(frame, Over):
                await self._end(frame)
                return
            self._pulse.alive()
            await self._take(frame)

    async def _take(self, frame: Mapping[str, Any]) -> None:
        match frame.get("op"):
            case 0 if isinstance(frame.get("s"), int):
                await self._queue.put(Told(frame["s"], str(frame.get("t")), frame.get("d")))
            case 1:
                await self._say(BEAT, self.stored or None)
            case 7:
                await self._end(Over())
            case 9:
                await self._end(Over(anew=frame.get("d") is not True))
            case 11:
                self._answered = True

    async def _beat(self, every: float) -> None:
        """At the pace Discord asks for. One that is not answered before the next means that nobody listens."""
        await self._ports.clock.sleep(every * random.random())
        while self._ended is None:
            if not self._answered:
                await self._end(Over(LinkLost("Discord did not answer a heartbeat: the connection is dead")))
                return
            self._answered = False
            try:
                await self._say(BEAT, self.stored or None)
            except LinkLost:
                return  # the reading task sees why
            await self._ports.clock.sleep(every)

    async def _end(self, over: Over) -> None:
        if self._ended is None:
            self._ended = over
            await self._queue.put(over)

    # ---- frames

    async def _frame(self, wait: float) -> Mapping[str, Any] | Over:
        try:
            found = parsed(await self._socket.read(wait))
        except Unavailable as fault:
            return _over(fault)
        return found if isinstance(found, dict) else {}

    async def _say(self, op: int, body: Any) -> None:
        try:
            await self._socket.write(encoded({"op": op, "d": body}).decode())
        except Unavailable as fault:
            raise LinkLost(fault.message) from None


async def opened(url: str, own: Settings, ports: Ports, pulse: Pulse) -> Gateway:
    """Connect. Raises LinkLost, and LinkRefused where the host has no such door, or the address is not protected."""
    if ports.dial is None:
        raise LinkRefused("this host opens no connections but HTTP")
    if own.root.startswith("https://") and not url.startswith("wss://"):
        raise LinkRefused("Discord names a gateway that is not encrypted; the token is not sent there")
    try:
        socket = await ports.dial.websocket(f"{url.rstrip('/')}/?v=10&encoding=json", limit=_FRAME, via=own.via)
    except Unavailable as fault:
        raise LinkLost(fault.message) from None
    return Gateway(socket, ports, pulse)


def _over(fault: Unavailable) -> Over:
    told = fault.details or {}
    if told.get("kind") != "closed":
        return Over(LinkLost(fault.message))
    code = int(told.get("code") or 1006)
    return Over(faults.closed(code, fault.message), anew=code in faults.ANEW)


def _identify(own: Settings) -> dict[str, Any]:
    about = {"os": "linux", "browser": "garra", "device": "garra"}
    return {"token": own.token.reveal(), "intents": own.intents, "properties": about}


def _resume(own: Settings, here: Position) -> dict[str, Any]:
    return {"token": own.token.reveal(), "session_id": here.session, "seq": here.seq}
