"""The WebSocket door over a real server: messages, pings, closings, refusals, proxies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from garra.core.errors import Unavailable
from garra.io.http import GuardedHttp
from garra.testing.web import Request as Asked
from garra.testing.web import answered, serving


@asynccontextmanager
async def echoing() -> AsyncIterator[tuple[str, Server]]:
    async def echo(socket: ServerConnection) -> None:
        async for message in socket:
            if message == "parts":
                await socket.send(["a", "b", "c"])
            elif message == "bytes":
                await socket.send(b"\x00\xff")
            elif message == "bye":
                await socket.close(4004, "no")
            elif message == "cut":
                socket.transport.abort()
            else:
                await socket.send(message)

    def gate(_: ServerConnection, request: Request) -> Response | None:
        refused = "authorization" not in request.headers and request.path == "/shut"
        return Response(403, "Forbidden", Headers(), b"") if refused else None

    async with serve(echo, "127.0.0.1", 0, process_request=gate) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}", server


@pytest.fixture
async def door() -> AsyncIterator[GuardedHttp]:
    door = GuardedHttp()
    yield door
    await door.close()


async def test_messages_go_both_ways_whole(door: GuardedHttp) -> None:
    async with echoing() as (url, _):
        socket = await door.websocket(f"{url}/?v=1")
        for text in ("hé ✓", "x" * 300_000, ""):
            await socket.write(text)
            assert await socket.read() == text
        await socket.write("parts")
        assert await socket.read() == "abc"
        await socket.write("bytes")
        assert await socket.read() == b"\x00\xff"
        await socket.close()


async def test_a_sign_of_life_is_counted_while_somebody_reads(door: GuardedHttp) -> None:
    async with echoing() as (url, server):
        socket = await door.websocket(url)
        reading = asyncio.ensure_future(socket.read())
        before = socket.heard
        await socket.ping()
        for connection in server.connections:
            await connection.ping()
        async with asyncio.timeout(20):
            while socket.heard < before + 2:  # noqa: ASYNC110 - frames are not messages
                await asyncio.sleep(0.01)
        assert not reading.done()
        await socket.write("now")
        assert await reading == "now"
        await socket.close()


async def test_how_it_ends_is_told(door: GuardedHttp) -> None:
    async with echoing() as (url, _):
        for word, code, reason in (("bye", 4004, "no"), ("cut", None, None)):
            socket = await door.websocket(url)
            await socket.write(word)
            with pytest.raises(Unavailable) as over:
                await socket.read()
            told = over.value.details or {}
            assert (told.get("kind"), told.get("code"), told.get("reason")) in (
                ("closed", code, reason),
                ("closed", 1006, ""),
                ("cut", None, None),
            )
            assert (code is None) == (told.get("code") != 4004)
            await socket.close()
        socket = await door.websocket(url)
        with pytest.raises(Unavailable) as over:
            await socket.read(timeout=0.05)
        assert (over.value.details or {})["kind"] == "timeout"
        await socket.close()
        with pytest.raises(Unavailable):
            await socket.write("too late")
        with pytest.raises(Unavailable):
            await socket.ping()


async def test_a_message_over_the_limit_ends_it(door: GuardedHttp) -> None:
    async with echoing() as (url, _):
        socket = await door.websocket(url, limit=1000)
        await socket.write("x" * 2000)
        with pytest.raises(Unavailable):
            await socket.read()
        await socket.close()


async def test_what_is_no_websocket_is_refused_in_words(door: GuardedHttp) -> None:
    async def hello(_: Asked) -> bytes:
        return answered(200, b"hello")

    async with echoing() as (url, _), serving(hello) as plain:
        with pytest.raises(Unavailable) as refused:
            await door.websocket(f"{url}/shut")
        assert (refused.value.details or {})["status"] == 403
        opened = await door.websocket(f"{url}/shut", headers={"authorization": "x"})
        await opened.close()
        with pytest.raises(Unavailable):
            await door.websocket(plain.replace("http:", "ws:"))
        for wrong in ("https://127.0.0.1/", "ws://", "nonsense"):
            with pytest.raises(Unavailable, match="no ws"):
                await door.websocket(wrong)
        with pytest.raises(Unavailable) as refused:
            await door.websocket("ws://127.0.0.1:9/")
        assert (refused.value.details or {})["kind"] == "connect"


async def test_the_guard_holds_for_it_too() -> None:
    guarded = GuardedHttp(guard=True)
    async with echoing() as (url, _):
        with pytest.raises(Unavailable):
            await guarded.websocket(url)
    await guarded.close()
