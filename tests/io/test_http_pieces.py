"""A large body goes out piece by piece, whole, and what else happens is not held up by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from garra.io.http import GuardedHttp

PIECES = (*(bytes([letter]) * (64 << 10) for letter in b"abcdefghijklmnopqrstuvwxyz"), b"]}")


@asynccontextmanager
async def taking(*answers: bytes) -> AsyncIterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server that answers one request after the other; gives its address and what it got, heads and bodies."""
    got: list[tuple[str, bytes]] = []
    waiting = iter(answers)

    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
                size = next(int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:"))
                got.append((head, await reader.readexactly(size)))
                writer.write(next(waiting))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", got
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.fixture
async def http() -> AsyncIterator[GuardedHttp]:
    door = GuardedHttp()
    yield door
    await door.close()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
ELSEWHERE = b"HTTP/1.1 307 Elsewhere\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n"


async def test_a_large_body_arrives_whole_also_a_second_time_and_others_have_their_turn(http: GuardedHttp) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with taking(ELSEWHERE, OK) as (url, got):
        await http.warm()
        beside = asyncio.create_task(other())
        async with http.stream("POST", f"{url}/here", body=PIECES) as answer:
            beside.cancel()
            assert await answer.read() == b"ok"
    assert [body for _, body in got] == [b"".join(PIECES)] * 2
    assert "transfer-encoding" not in got[0][0]
    assert turns > 2 * len(PIECES)


async def test_a_small_one_goes_out_at_once(http: GuardedHttp) -> None:
    async with taking(OK, OK) as (url, got):
        async with http.stream("POST", url, body=(b'{"a":', b"1}")) as answer:
            assert await answer.read() == b"ok"
        async with http.stream("POST", url, body=()) as answer:
            assert await answer.read() == b"ok"
    assert [body for _, body in got] == [b'{"a":1}', b""]


async def test_the_upper_layer_passes_pieces_on(http: GuardedHttp) -> None:
    async def flow() -> AsyncIterator[bytes]:
        for piece in PIECES:
            yield piece

    async with taking(OK) as (url, got):
        await http.warm()
        client = await asyncio.to_thread(http.client)
        answer = await client.post(url, content=flow())
        assert answer.content == b"ok"
    assert got[0][1] == b"".join(PIECES)
    assert "transfer-encoding" not in got[0][0]
