"""A program below us is known by the kernel's word, whatever it says of itself."""

from __future__ import annotations

import asyncio
import os
import sys

from garra.io.process import kin
from garra.io.process.door import Programs, Start

CALL = "import socket,sys,time; s=socket.create_connection(('127.0.0.1', int(sys.argv[1]))); time.sleep(30)"


async def test_who_calls_from_below_is_known_and_who_does_not_is_not() -> None:
    met: asyncio.Queue[int] = asyncio.Queue()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await met.put(writer.get_extra_info("peername")[1])
        await reader.read()
        writer.close()

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    to, programs = server.sockets[0].getsockname()[1], Programs()
    async with server:
        child = await programs.start(Start((sys.executable, "-c", CALL, str(to)), "/", keep=True))
        async with asyncio.timeout(10):
            theirs = await met.get()
        assert await asyncio.to_thread(kin.holds, theirs)
        _, ours = await asyncio.open_connection("127.0.0.1", to)
        assert not await asyncio.to_thread(kin.holds, await met.get())
        assert not await asyncio.to_thread(kin.holds, 1)
        ours.close()
        await child.kill()
        child.close()
    await programs.close()


def test_who_is_above() -> None:
    assert kin.above(os.getppid()) == (os.getppid() != 1)
    assert not kin.above(os.getpid())
    assert not kin.above(1)
