"""A socket for libraries that insist on one: bytes both ways, ends both ways, and the same rules as for others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from garra.core.errors import Unavailable
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks


@asynccontextmanager
async def echo() -> AsyncIterator[tuple[int, asyncio.Event]]:
    gone = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (line := await reader.readline()) not in {b"", b"bye\n"}:
            writer.write(line)
        gone.set()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 20)
    try:
        yield server.sockets[0].getsockname()[1], gone
    finally:
        server.close()


async def test_bytes_both_ways_and_either_end_ends_it() -> None:
    async with echo() as (port, gone), Tasks() as tasks:
        http = GuardedHttp()
        for last in (b"bye\n", b""):
            plug: socket.socket = await http.plug("127.0.0.1", port, tasks, tls=False)
            large = b"x" * 300_000 + b"\n"
            await asyncio.to_thread(plug.sendall, large)
            got = b""
            while len(got) < len(large):
                got += await asyncio.to_thread(plug.recv, 1 << 16)
            assert got == large
            gone.clear()
            if last:
                await asyncio.to_thread(plug.sendall, last)
                assert await asyncio.to_thread(plug.recv, 10) == b""
            plug.close()
            async with asyncio.timeout(20):
                await gone.wait()
        async with asyncio.timeout(20):
            while len(tasks):  # noqa: ASYNC110 - they tell nobody
                await asyncio.sleep(0.01)
        await http.close()


async def test_what_cannot_be_reached_says_so_at_once() -> None:
    async with Tasks() as tasks:
        for http in (GuardedHttp(), GuardedHttp(guard=True)):
            with pytest.raises(Unavailable):
                await http.plug("127.0.0.1", 1, tasks, tls=False)
            await http.close()
        assert not len(tasks)


async def test_certificates_to_trust_are_the_doors_own() -> None:
    http = GuardedHttp()
    context = await http.trust()
    assert context.check_hostname
    assert context is await http.trust()
    await http.close()
