"""The relay carries one request over one connection: what follows for another host never reaches this one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from garra.io.http import GuardedHttp
from garra.io.http.relay import Refusal, Relay, Way
from garra.io.tasks import Tasks
from tests.io.test_http import plain, serving


@asynccontextmanager
async def relaying(*hosts: str) -> AsyncIterator[int]:
    door = GuardedHttp()

    def judge(host: str, port: str) -> Way | Refusal:
        return Way(door, host, int(port), lambda: None, lambda _: None) if host in hosts else Refusal(f"not {host}")

    async with Tasks() as spawn:
        listener = socket.create_server(("127.0.0.1", 0))
        relay = Relay(judge, spawn)
        await relay.serve(listener)
        yield listener.getsockname()[1]
        await relay.close()
    await door.close()


async def said(port: int, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    try:
        async with asyncio.timeout(3):
            return await reader.read(4_096)
    except ConnectionResetError:
        return b""
    finally:
        writer.transport.abort()


async def test_an_answer_says_that_the_connection_ends() -> None:
    async with (
        serving(lambda _: plain(b"hi", "200 OK", "connection: keep-alive")) as (url, _),
        relaying("127.0.0.1") as port,
    ):
        answer = (await said(port, f"GET {url}/a HTTP/1.1\r\nHost: x\r\n\r\n".encode())).lower()
    assert b"connection: close" in answer
    assert b"keep-alive" not in answer


async def test_a_second_request_is_not_carried_to_the_first_host() -> None:
    async with serving(lambda _: plain(b"hi")) as (url, heads), relaying("127.0.0.1") as port:
        first = f"GET {url}/a HTTP/1.1\r\nHost: x\r\n\r\n"
        await said(port, f"{first}GET http://other.example/secret HTTP/1.1\r\nHost: other.example\r\n\r\n".encode())
        posted = f"POST {url}/b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        assert b"hi" in await said(port, posted.encode())
    assert not [head for head in heads if "secret" in head]


@pytest.mark.parametrize(
    "more", ["Content-Length: 3", "Transfer-Encoding: chunked", "Content-Length: 3\r\nContent-Length: 300"]
)
async def test_a_request_behind_a_body_of_chunks_goes_nowhere(more: str) -> None:
    heard, over = bytearray(), asyncio.Event()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(4_096):
            heard.extend(data)
            if heard.endswith(b"0\r\n\r\n"):
                over.set()
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    to = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    other = "GET http://other.example/secret HTTP/1.1\r\nHost: other.example\r\n\r\n"
    async with server, relaying("127.0.0.1") as port:
        body = "3\r\nabc\r\n0\r\n\r\n"
        head = f"POST {to}/a HTTP/1.1\r\nHost: x\r\n"
        await said(port, f"{head}Transfer-Encoding: chunked\r\n\r\n{body}{other}".encode())
        await said(port, f"{head}Transfer-Encoding: chunked\r\n{more}\r\n\r\n{body}".encode())
        assert b"secret" not in heard
        assert b"abc" not in heard
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for each in body:
            writer.write(each.encode())
            await writer.drain()
        async with asyncio.timeout(3):
            await over.wait()
        writer.close()
    assert b"abc" in heard


async def test_the_host_is_told_the_name_that_was_judged() -> None:
    async with serving(lambda _: plain(b"hi")) as (url, heads), relaying("127.0.0.1") as port:
        other = b"Host: other.example\r\nhost : other.example\r\nX-A: 1\nHost: other.example\r\n"
        await said(port, f"GET {url}/a HTTP/1.1\r\n".encode() + other.partition(b"X-A")[0] + b"\r\n")
        assert b"no request" in await said(port, f"GET {url}/b HTTP/1.1\r\n".encode() + other + b"\r\n")
    assert len(heads) == 1
    assert "other.example" not in heads[0]
    assert f"host: {url.removeprefix('http://')}" in heads[0].lower()


async def test_what_is_not_let_through_says_why() -> None:
    async with relaying() as port:
        assert b"not other.example" in await said(port, b"CONNECT other.example:443 HTTP/1.1\r\n\r\n")
