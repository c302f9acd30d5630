"""The ends of a child's pipes and terminals, as things to await."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable

from garra.core.errors import Unavailable

CHUNK = 65_536


class _End:
    """Our end of a pipe or terminal: a descriptor that does not block, and at most one who waits for it."""

    def __init__(self, fd: int | None) -> None:
        if fd is not None:
            os.set_blocking(fd, False)
        self._fd = fd
        self._waiter: asyncio.Future[None] | None = None

    async def _ready(self, add: Callable[..., object], remove: Callable[[int], object]) -> None:
        fd = self._fd
        if fd is None:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        add(fd, self._wake)
        try:
            await self._waiter
        finally:
            remove(fd)
            self._waiter = None
            if self._fd is None:  # closed while it was waited for: only now may the number be another's
                os.close(fd)

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if self._waiter:
            self._wake()
        elif fd is not None:
            os.close(fd)


class Source(_End):
    """What a child says. One reader at a time; nothing is buffered ahead of it, so a slow reader slows the child."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._rest = b""

    async def read(self, most: int = CHUNK) -> bytes:
        """The next bytes, at most `most`; empty at the end."""
        if self._rest:
            taken, self._rest = self._rest[:most], self._rest[most:]
            return taken
        loop = asyncio.get_running_loop()
        while self._fd is not None:
            try:
                data = os.read(self._fd, most)
            except BlockingIOError:
                await self._ready(loop.add_reader, loop.remove_reader)
            except OSError as error:
                if error.errno in {errno.EIO, errno.EBADF}:  # the other side of a terminal is gone
                    return b""
                raise
            else:
                await asyncio.sleep(0)  # a child that never pauses must not keep the loop to itself
                return data
        return b""

    async def line(self, limit: int = 1 << 20) -> bytes:
        """The next line with its end; what is left at the end of it all; empty after that.

        Raises Unavailable when a line is longer than `limit` bytes.
        """
        parts: list[bytes] = []
        size = 0
        while data := await self.read():
            head, end, rest = data.partition(b"\n")
            parts.append(head + end)
            size += len(head)
            if size > limit:
                raise Unavailable(f"a program of ours wrote a line of more than {limit} bytes")
            if end:
                self._rest = rest + self._rest
                break
        return b"".join(parts)

    async def lines(self, limit: int = 1 << 20) -> AsyncIterator[bytes]:
        """Every line to the end; raises as `line`."""
        while found := await self.line(limit):
            yield found


class Sink(_End):
    """What a child is told. Awaiting a write waits until the child has room for it."""

    def __init__(self, fd: int | None) -> None:
        super().__init__(fd)
        self._turn = asyncio.Lock()

    async def write(self, data: bytes) -> None:
        """Raises Unavailable when the child no longer listens."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            rest = memoryview(data)
            while rest:
                if self._fd is None:
                    raise Unavailable("the program takes no input")
                try:
                    rest = rest[os.write(self._fd, rest) :]
                except BlockingIOError:
                    await self._ready(loop.add_writer, loop.remove_writer)
                except OSError:
                    raise Unavailable("the program no longer takes input") from None
