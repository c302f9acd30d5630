"""A secret that is bound to hosts goes to no other, in whatever form, also after a redirect."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from garra.core.errors import Unavailable
from garra.core.secret import Bound, Secret
from garra.io.http.door import GuardedHttp

KEY = "sk-known-5f3c9a7e1b2d4c6f8a0e"


class Seen:
    """A server that keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
        self.port = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def seen(host: str = "127.0.0.1") -> AsyncIterator[Seen]:
    found = Seen()
    server = await asyncio.start_server(found.take, host, 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found


def door(*hosts: str) -> GuardedHttp:
    return GuardedHttp(bound=lambda: (Bound("A_KEY", Secret(KEY), hosts),))


async def ask(http: GuardedHttp, url: str, **more: object) -> int:
    try:
        async with http.stream("GET", url, **more) as answer:  # type: ignore[arg-type]  # what the case says
            return answer.status
    finally:
        await http.close()


async def test_to_its_own_host_it_goes() -> None:
    async with seen() as server:
        url = f"http://127.0.0.1:{server.port}/"
        assert await ask(door("127.0.0.1"), url, headers={"authorization": f"Bearer {KEY}"}) == 200
        assert KEY.encode() in server.requests[0]


@pytest.mark.parametrize(
    "form",
    [
        {"headers": {"x-own": KEY}},
        {"headers": {"authorization": "Basic " + base64.b64encode(f"me:{KEY}".encode()).decode()}},
        {"body": b'{"key": "' + KEY.encode() + b'"}'},
        {"body": (b'{"key": "', KEY.encode(), b'"}')},
    ],
)
async def test_to_another_it_does_not(form: dict[str, object]) -> None:
    async with seen() as server:
        with pytest.raises(Unavailable) as fault:
            await ask(door("api.example.com"), f"http://127.0.0.1:{server.port}/", **form)
        assert "A_KEY may not go to 127.0.0.1, only to api.example.com" in str(fault.value)
        assert KEY not in str(fault.value)
        assert server.requests == []


async def test_nor_in_the_address() -> None:
    async with seen() as server:
        with pytest.raises(Unavailable):
            await ask(door("api.example.com"), f"http://127.0.0.1:{server.port}/bot{KEY}/x")
        assert server.requests == []


async def test_after_a_redirect_to_another_origin_no_header_of_ones_own_goes_along() -> None:
    async with seen() as other, seen() as first:
        first.answer = (
            f"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{other.port}/\r\ncontent-length: 0\r\n\r\n"
        ).encode()
        headers = {"x-vendor-key": KEY, "authorization": f"Bearer {KEY}", "accept": "text/plain"}
        assert await ask(GuardedHttp(), f"http://127.0.0.1:{first.port}/", headers=headers) == 200
        assert first.requests[0].count(KEY.encode()) == 2
        assert KEY.encode() not in other.requests[0]
        assert b"accept: text/plain" in other.requests[0]
