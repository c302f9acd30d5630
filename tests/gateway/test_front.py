"""Strangers on the port: each request head and body is bounded, and a crowd of them keeps nobody else out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from garra.gateway.front import HEAD_BYTES
from garra.gateway.http_io import Rejected, read, vouch
from garra.gateway.room import Limits, spared
from garra.gateway.serve import Server, bind
from tests.gateway.house import running

BEAT = 0.05
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
LIMIT = 1_000_000

Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Port:
    """A port with an application that counts bodies: `/in` for anybody, `/known` for those with the secret."""

    server: Server
    wires: list[Wire] = field(default_factory=list)

    async def open(self, *said: bytes) -> Wire:
        wire = await asyncio.open_connection("127.0.0.1", self.server.port)
        self.wires.append(wire)
        wire[1].write(b"".join(said))
        return wire

    async def ask(self, *said: bytes) -> bytes:
        """All that is answered until the connection ends."""
        reader, _ = await self.open(*said)
        return await reader.read(-1)


def post(size: int, path: str = "/in", *, more: str = "") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n{more}\r\n".encode()


CLOSE = "Connection: close\r\n"


async def taken(request: Request) -> Response:
    if request.url.path == "/known":
        vouch(request)
    try:
        return PlainTextResponse(str(len(await read(request, LIMIT))))
    except Rejected as rejected:
        return rejected.response


async def alive(request: Request) -> Response:
    return PlainTextResponse("alive")


async def large(request: Request) -> Response:
    return PlainTextResponse("z" * (32 << 20))


@asynccontextmanager
async def port(folder: Path, limits: Limits | None = None) -> AsyncIterator[Port]:
    routes = [Route("/healthz", alive), Route("/large", large)]
    routes += (Route(path, taken, methods=["POST"]) for path in ("/in", "/known"))
    async with running(folder) as house:
        server = Server(house.gateway, Starlette(routes=routes), limits)
        await server.start(bind(("127.0.0.1",), 0))
        opened = Port(server)
        try:
            yield opened
        finally:
            for _, writer in opened.wires:
                writer.transport.abort()
            await server.close()


async def first(wire: Wire) -> bytes:
    """The answer to the first request on a connection that stays open."""
    head = await wire[0].readuntil(b"\r\n\r\n")
    return head + await wire[0].readexactly(5)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("piece", [b"X-Pad: " + b"x" * 1000 + b"\r\n", b"x" * 1000])
async def test_every_head_on_a_connection_is_bounded_in_size(tmp_path: Path, piece: bytes, *, before: bool) -> None:
    async with port(tmp_path) as house:
        wire = await house.open(GET, b"\r\n" if before else b"")
        if before:
            assert (await first(wire)).endswith(b"alive")
            wire[1].write(GET)
        wire[1].write(b"X-Long: ")
        for _ in range(HEAD_BYTES // 1000 + 2):
            wire[1].write(piece)
        assert (await wire[0].read(-1)).startswith(b"HTTP/1.1 431")


async def test_a_large_head_is_refused_even_where_it_is_whole_at_once(tmp_path: Path) -> None:
    async with port(tmp_path) as house:
        lines = b"".join(b"X-%d: %b\r\n" % (n, b"y" * 1000) for n in range(90))
        assert (await house.ask(GET, lines, b"\r\n")).startswith(b"HTTP/1.1 431")
        assert (await house.ask(GET, lines[:50_000], b"\r\nConnection: close\r\n\r\n")).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("before", [False, True])
async def test_every_head_on_a_connection_is_bounded_in_time(tmp_path: Path, *, before: bool) -> None:
    async with port(tmp_path, Limits(head_s=0.3, beat_s=BEAT)) as house:
        wire = await house.open(GET, b"\r\n" if before else b"")
        if before:
            await first(wire)
            wire[1].write(GET)
        assert (await wire[0].read(-1)).startswith(b"HTTP/1.1 408")


async def test_what_follows_a_chunked_body_is_bounded(tmp_path: Path) -> None:
    chunked = b"POST /in HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
    async with port(tmp_path) as house:
        for begin, piece in ((b"0\r\n", b"X-Pad: " + b"x" * 1000 + b"\r\n"), (b"1;", b"x" * 1000)):
            reader, _ = await house.open(chunked, begin, piece * 300)
            assert (await reader.read(-1)).startswith(b"HTTP/1.1 431")


async def test_a_body_is_never_taken_for_a_head(tmp_path: Path) -> None:
    async with port(tmp_path) as house:
        for size in (0, 1, 60_000, HEAD_BYTES, 100_000, 300_000, LIMIT):
            for _ in range(20):
                answer = await house.ask(post(size, more=CLOSE), b"y" * size)
                assert answer.startswith(b"HTTP/1.1 200"), size
                assert answer.endswith(str(size).encode())


async def test_two_bodies_and_heads_in_one_write(tmp_path: Path) -> None:
    async with port(tmp_path) as house:
        body = b"y" * 70_000
        answer = await house.ask(post(70_000), body, post(70_000), body, post(3, more=CLOSE), b"abc")
        assert answer.count(b"HTTP/1.1 200") == 3
        assert answer.endswith(b"3")


async def test_a_body_beyond_the_limit_gets_its_answer(tmp_path: Path) -> None:
    async with port(tmp_path) as house:
        for more in (CLOSE, ""):
            size = 3 * LIMIT
            reader, _ = await house.open(post(size, more=more), b"y" * size, b"" if more else GET + b"\r\n")
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 413")


async def test_a_body_that_stands_still_or_crawls_is_cut(tmp_path: Path) -> None:
    async with port(tmp_path, Limits(still_s=0.3, beat_s=BEAT)) as house:
        assert (await house.ask(post(LIMIT), b"y" * 200_000)).startswith(b"HTTP/1.1 408")
        assert (await house.ask(post(LIMIT))).startswith(b"HTTP/1.1 408")
    async with port(tmp_path / "slow", Limits(body_s=0.3, beat_s=BEAT)) as house:
        wire = await house.open(post(LIMIT))
        answer = asyncio.ensure_future(wire[0].read(-1))
        while not answer.done():
            wire[1].write(b"y")
            await asyncio.sleep(0.02)
        assert answer.result().startswith(b"HTTP/1.1 408")


async def test_who_has_shown_the_secret_may_take_longer(tmp_path: Path) -> None:
    async with port(tmp_path, Limits(body_s=0.1, still_s=0.1, beat_s=BEAT)) as house:
        wire = await house.open(post(2, "/known", more=CLOSE), b"a")
        stranger = await house.open(post(2, more=CLOSE), b"a")
        assert (await stranger[0].read(-1)).startswith(b"HTTP/1.1 408")
        wire[1].write(b"b")
        assert (await wire[0].read(-1)).startswith(b"HTTP/1.1 200")


async def test_a_silent_connection_ends_before_and_after_a_request(tmp_path: Path) -> None:
    async with port(tmp_path, Limits(head_s=0.2, beat_s=BEAT)) as house:
        assert await house.ask() == b""
        wire = await house.open(GET, b"\r\n")
        await first(wire)
        assert await wire[0].read(-1) == b""
        assert not house.server.room
        await asyncio.sleep(0.15)
        assert not house.server.room.beating


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - what is waited for happens in the kernel
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("more", ["", CLOSE])
async def test_an_answer_that_nobody_reads_is_cut(tmp_path: Path, more: str) -> None:
    async with port(tmp_path, Limits(answer_s=0.3, beat_s=BEAT)) as house:
        wire = await house.open(b"GET /large HTTP/1.1\r\nHost: localhost\r\n", more.encode(), b"\r\n")
        wire[1].transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: house.server.open > 0)
        await until(lambda: house.server.open == 0)
        wire[1].transport.resume_reading()  # type: ignore[attr-defined]
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await wire[0].readexactly(32 << 20)


async def test_no_more_than_a_few_requests_wait_for_the_answer_before_them(tmp_path: Path) -> None:
    async with port(tmp_path) as house:
        get = GET + b"\r\n"
        assert (await house.ask(get * 10, GET, CLOSE.encode(), b"\r\n")).count(b"HTTP/1.1 200") == 11
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await (await house.open(get * 1000))[0].readexactly(50_000)


async def test_unfinished_requests_of_one_address_are_few_and_others_get_in(tmp_path: Path) -> None:
    async with port(tmp_path, Limits(per_address=8, beat_s=BEAT)) as house:
        stuck = [await house.open(post(LIMIT), b"y" * 10) for _ in range(40)]
        told = [await reader.read(-1) for reader, _ in stuck[:32]]
        assert all(answer.startswith(b"HTTP/1.1 503") for answer in told)
        assert len(house.server.room) >= 8
        assert (await house.ask(post(LIMIT, more=CLOSE), b"y" * LIMIT)).startswith(b"HTTP/1.1 200")


async def test_unfinished_bodies_fill_so_much_memory_at_most(tmp_path: Path) -> None:
    async with port(tmp_path, Limits(held_bytes=2 * LIMIT)) as house:
        stuck = [await house.open(post(LIMIT), b"y" * (LIMIT - 1)) for _ in range(6)]
        told = [await reader.read(-1) for reader, _ in stuck[:3]]
        assert all(answer.startswith(b"HTTP/1.1 503") for answer in told)
        assert (await house.ask(post(3, more=CLOSE), b"abc")).endswith(b"3")


async def test_a_full_port_makes_room_and_tells_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "garra.gateway"):
        async with port(tmp_path, Limits(connections=20)) as house:
            stuck = [await house.open(post(LIMIT)) for _ in range(60)]
            assert (await house.ask(GET, CLOSE.encode(), b"\r\n")).endswith(b"alive")
            for reader, _ in stuck[:40]:
                with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                    await reader.readexactly(1)
    (line,) = [record.message for record in caplog.records if "connections are open" in record.message]
    assert line == (
        "20 connections are open, as many as the open-files limit leaves room for: "
        "those that have been still for longest are closed"
    )


async def test_refused_upgrades_keep_nobody_out(tmp_path: Path) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: http://localhost\r\n\r\n"
    async with port(tmp_path, Limits(connections=20)) as house:
        for _ in range(60):
            reader, _ = await house.open(GET, upgrade)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 4")
        assert (await house.ask(GET, CLOSE.encode(), b"\r\n")).endswith(b"alive")
        assert len(house.server.room) <= 20


def test_a_quarter_of_the_descriptors_is_left() -> None:
    assert [spared(allowed) for allowed in (64, 256, 1024, 20_000)] == [16, 192, 768, 15_000]
