"""Connections that stay open: used again, given up in time, never used by two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from garra.io.http import GuardedHttp
from garra.io.http.connections import IDLE
from tests.io.test_http import plain, read, serving


@pytest.fixture
async def http() -> AsyncIterator[GuardedHttp]:
    door = GuardedHttp()
    yield door
    await door.close()


async def slow() -> bytes:
    await asyncio.sleep(0.2)
    return plain()


async def test_many_at_once_have_a_connection_each_and_some_are_kept(http: GuardedHttp) -> None:
    many = IDLE + 8
    async with serving(lambda _: slow()) as (url, heads):
        await asyncio.gather(*(read(http, url) for _ in range(many)))
        assert len(heads.peers) == many
        await asyncio.gather(*(read(http, url) for _ in range(many)))
        assert (len(heads), len(heads.peers)) == (2 * many, many + 8)


async def test_each_server_has_its_own(http: GuardedHttp) -> None:
    async with serving(lambda _: plain(b"one")) as (one, seen), serving(lambda _: plain(b"two")) as (two, also):
        assert [await read(http, url) for url in (one, two, one, two)] == [b"one", b"two", b"one", b"two"]
    assert (len(seen.peers), len(also.peers)) == (1, 1)


async def test_what_the_server_closed_is_not_used_again(http: GuardedHttp) -> None:
    async with serving(lambda _: plain(b"bye", "200 OK", "connection: close")) as (url, heads):
        assert [await read(http, url) for _ in range(3)] == [b"bye"] * 3
        assert len(heads.peers) == 3


async def test_a_request_given_up_takes_its_connection_along(http: GuardedHttp) -> None:
    async with serving(lambda head: slow() if "/slow" in head else plain(b"quick")) as (url, heads):
        await read(http, url)
        asked = asyncio.create_task(read(http, f"{url}/slow"))
        await asyncio.sleep(0.05)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await read(http, url) == b"quick"
        assert len(heads.peers) == 2


async def test_an_answer_left_half_read_takes_its_connection_along(http: GuardedHttp) -> None:
    async with serving(lambda _: plain(b"x" * 500_000)) as (url, heads):
        async with http.stream("GET", url) as body:
            async for _ in body.chunks():
                break
        assert len(await read(http, url)) == 500_000
        assert len(heads.peers) == 2
