"""One connection in lines: read, written at a pace servers bear, kept alive; and questions with their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from garra.builtin.channels.irc.line import Line, read, write
from garra.core.errors import Unavailable
from garra.sdk.channel import LinkLost
from garra.sdk.ports import Clock, Stream

QUIET_S = 30.0
"""After so long without a line the server is asked whether it is there; after as long again it is not."""
LINES_S, BURST = 1.0, 6.0
"""Lines a second, as servers take them, and how many may go at once after a pause."""
_PENDING = 64 << 10
T = TypeVar("T")


class Wire:
    """A connection. `batch` is read by one task; anybody may write and ask meanwhile."""

    def __init__(self, stream: Stream, clock: Clock) -> None:
        self._stream, self._clock = stream, clock
        self._rest = b""
        self._room, self._at = BURST, clock.monotonic()
        self._turn = asyncio.Lock()
        self._asked: dict[asyncio.Future[bool], Callable[[Line], bool]] = {}
        self.ended: Exception | None = None

    async def batch(self) -> list[Line]:
        """The next lines, at least one. Raises LinkLost."""
        *whole, self._rest = (self._rest + await self._arrived()).split(b"\n")
        if len(self._rest) > _PENDING:
            raise LinkLost("the server sends a line without end")
        found = [line for raw in whole if (line := read(raw)) is not None]
        for line in found:
            if line.command == "PING":
                await self.at_once(write("PONG", *line.params[-1:]))
            for future, answer in tuple(self._asked.items()):
                if not future.done() and answer(line):
                    future.set_result(True)
        return found or await self.batch()

    async def _arrived(self) -> bytes:
        for quiet in (False, True):
            try:
                data = await self._stream.read(timeout=QUIET_S)
            except Unavailable as fault:
                if quiet or (fault.details or {}).get("kind") != "timeout":
                    raise LinkLost(fault.message) from None
                await self.at_once(write("PING", "are-you-there"))
                continue
            if not data:
                raise LinkLost("the server closed the connection")
            return data
        raise LinkLost("the server does not answer")

    async def write(self, line: bytes) -> None:
        """Say a line when its turn has come. Raises LinkLost."""
        async with self._turn:
            now = self._clock.monotonic()
            self._room = min(BURST, self._room + (now - self._at) * LINES_S) - 1.0
            self._at = now
            if self._room < 0:
                await self._clock.sleep(-self._room / LINES_S)
            await self.at_once(line)

    async def at_once(self, line: bytes) -> None:
        """Say a line without waiting. Raises LinkLost."""
        if self.ended is not None:
            raise LinkLost("the connection is gone")
        try:
            await self._stream.write(line)
        except Unavailable as fault:
            raise LinkLost(fault.message) from None

    async def ask(self, lines: Sequence[bytes], answer: Callable[[Line], T | None], wait_s: float = 30.0) -> T:
        """Say `lines` and wait for the line that `answer` makes something of. Raises LinkLost, and TimeoutError."""
        heard: list[T] = []
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def hear(line: Line) -> bool:
            if (told := answer(line)) is not None:
                heard.append(told)
            return bool(heard)

        self._asked[future] = hear
        try:
            for line in lines:
                await self.write(line)
            async with asyncio.timeout(wait_s):
                answered = await future
        finally:
            del self._asked[future]
        if not answered:
            raise LinkLost("the connection broke")
        return heard[0]

    async def end(self, why: Exception) -> None:
        """Nothing comes any more: whoever asked is told so."""
        self.ended = self.ended or why
        for future in self._asked:
            if not future.done():
                future.set_result(False)
        await self._stream.close()
