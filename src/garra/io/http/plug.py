"""A local socket whose other end is a connection of ours, for libraries that take nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Coroutine
from typing import Any

from garra.core.errors import Unavailable
from garra.sdk.ports import Spawn, Stream

_PIECE = 1 << 16


def plugged(stream: Stream, spawn: Spawn, name: str) -> socket.socket:
    """The library's end. When either side closes, the other is told by an end of its bytes."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    plug = _Plug(stream, ours)
    spawn(plug.carried(plug.inward()), f"from {name}")
    spawn(plug.carried(plug.outward()), f"to {name}")
    return theirs


class _Plug:
    """Two tasks that carry bytes; the last one to end lets the sockets go."""

    def __init__(self, stream: Stream, ours: socket.socket) -> None:
        self._stream, self._ours, self._running = stream, ours, 2

    async def carried(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            with contextlib.suppress(Unavailable, OSError):
                await work
        finally:
            work.close()
            with contextlib.suppress(OSError):
                self._ours.shutdown(socket.SHUT_RDWR)
            self._running -= 1
            if not self._running:
                self._ours.close()
            await self._stream.close()

    async def inward(self) -> None:
        loop = asyncio.get_running_loop()
        while data := await self._stream.read(_PIECE):
            await loop.sock_sendall(self._ours, data)

    async def outward(self) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(self._ours, _PIECE):
            await self._stream.write(data)
