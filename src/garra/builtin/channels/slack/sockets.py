"""Connections by Socket Mode: opened with a ticket, read into one queue, replaced before the old one goes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from garra.builtin.channels.slack import faults
from garra.builtin.channels.slack.api import Api, Refused
from garra.builtin.channels.slack.settings import Settings
from garra.core.errors import Unavailable
from garra.core.value import frozen
from garra.sdk.channel import LinkLost, LinkRefused, Ports, Pulse
from garra.sdk.encoding import encoded, parsed
from garra.sdk.ports import Task, WebSocket

WAITING = 2_000
"""So many envelopes may wait to be stored; then no more is read."""
PING_S = 15.0
"""After so long without a frame Slack is asked whether it is there; after as long again it is not."""
_HELLO_S = 20.0


@frozen
class Came:
    """A frame, and the connection its acknowledgement goes to."""

    socket: WebSocket
    frame: dict[str, Any]


@frozen
class Gone:
    """A connection has ended."""

    socket: WebSocket
    why: LinkLost


@frozen
class Spent:
    """A connection that has been replaced; all it brought before is stored when its turn comes."""

    socket: WebSocket


class Sockets:
    """The connections of one app. `next` gives what came on any of them, in order."""

    def __init__(self, own: Settings, api: Api, ports: Ports, pulse: Pulse) -> None:
        self._own, self._api, self._ports, self._pulse = own, api, ports, pulse
        self._queue: asyncio.Queue[Came | Gone | Spent] = asyncio.Queue(WAITING)
        self._open: list[tuple[WebSocket, Task]] = []
        self._beat: Task | None = None
        self.current: WebSocket | None = None

    async def open(self) -> None:
        """Connect, greeted by Slack, in place of what was before. Raises LinkLost and LinkRefused."""
        before = self.current
        socket = await self._connected()
        self.current = socket
        self._open.append((socket, self._ports.spawn(self._read(socket), "slack socket")))
        self._beat = self._beat or self._ports.spawn(self._watch(), "slack heartbeat")
        if before is not None:
            await self._queue.put(Spent(before))

    async def next(self) -> list[Came | Gone | Spent]:
        """What came, at least one."""
        found = [await self._queue.get()]
        while not self._queue.empty():
            found.append(self._queue.get_nowait())
        return found

    async def acknowledge(self, came: Came) -> None:
        """Tell Slack that it is stored. A connection that is gone cannot be told: Slack then sends it again."""
        number = came.frame.get("envelope_id")
        if not isinstance(number, str):
            return
        try:
            await came.socket.write(encoded({"envelope_id": number}).decode())
        except Unavailable:
            return

    async def drop(self, socket: WebSocket) -> None:
        for open_, task in tuple(self._open):
            if open_ is socket:
                self._open.remove((open_, task))
                task.cancel()
                await socket.close()

    async def close(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        for socket, _ in tuple(self._open):
            await self.drop(socket)

    async def _connected(self) -> WebSocket:
        dial = self._ports.dial
        if dial is None:
            raise LinkRefused("this host opens no connections but HTTP")
        url = await self._address()
        try:
            socket = await dial.websocket(url, via=self._own.via)
        except Unavailable as fault:
            raise LinkLost(fault.message) from None
        try:
            hello = _frame(await socket.read(_HELLO_S))
        except BaseException as fault:
            await socket.close()
            if isinstance(fault, Unavailable):
                raise LinkLost(fault.message) from None
            raise
        if hello.get("type") == "disconnect":
            await socket.close()
            raise ended(hello) or LinkLost("Slack wants another connection")
        if self.current is None and isinstance(count := hello.get("num_connections"), int) and count > 1:
            self._pulse.note(f"Slack counts {count} connections of this app; {faults.SHARED}")
        return socket

    async def _address(self) -> str:
        try:
            found = await self._api.call("apps.connections.open")
        except Refused as refused:
            raise faults.link_lost(refused) from None
        url = str(found.get("url") or "")
        if self._own.root.startswith("https://") and not url.startswith("wss://"):
            raise LinkRefused("Slack names a connection that is not encrypted; it is not used")
        return url

    async def _read(self, socket: WebSocket) -> None:
        while True:
            try:
                frame = _frame(await socket.read())
            except Unavailable as fault:
                await self._queue.put(Gone(socket, LinkLost(fault.message)))
                return
            self._pulse.alive()
            await self._queue.put(Came(socket, frame))

    async def _watch(self) -> None:
        """A connection that is quiet is asked; Slack's own pings are life too."""
        heard, asked = -1, False
        while True:
            socket = self.current
            assert socket is not None
            if socket.heard != heard:
                self._pulse.alive()
                heard, asked = socket.heard, False
            elif asked:
                await self._queue.put(Gone(socket, LinkLost("Slack does not answer: the connection is dead")))
                return
            else:
                asked = True
                with suppress(Unavailable):  # the reading task says so
                    await socket.ping()
            await self._ports.clock.sleep(PING_S)


def ended(frame: dict[str, Any]) -> LinkLost | LinkRefused | None:
    """What Slack's goodbye means: None where it only wants a new connection."""
    match frame.get("reason"):
        case "link_disabled":
            return LinkRefused(faults.DISABLED)
        case "too_many_websockets":
            return LinkLost(faults.CROWDED)
        case _:
            return None


def _frame(data: str | bytes) -> dict[str, Any]:
    found = parsed(data)
    return found if isinstance(found, dict) else {}
