"""Visits to places that a model chose: what is not public is refused, whatever it is called, however one gets there."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from garra.core.errors import Unavailable
from garra.core.hosts import Hosts
from garra.io.http.outside import Outside, origin
from garra.sdk.web import Visit
from tests.io.test_http import plain, serving

FORMS = (
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0", "localhost", "localhost.",
    "LOCALHOST", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]", "[::]", "169.254.169.254",
    "10.1.2.3", "192.168.0.1", "100.64.0.1", "198.18.0.1", "[fe80::1]", "[fc00::1]", "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "127。0。0。1", "①②⑦.⓪.⓪.①", "224.0.0.1", "255.255.255.255",
)  # fmt: skip


@asynccontextmanager
async def outside(hosts: Hosts | Callable[[], Hosts] = Hosts()) -> AsyncIterator[Outside]:  # noqa: B008 - a value
    door = Outside(hosts if callable(hosts) else lambda: hosts)
    yield door
    await door.close()


async def got(door: Outside, visit: Visit) -> tuple[int, str, bytes]:
    async with door.open(visit) as answer:
        return answer.status, answer.url, await answer.read()


async def refused(door: Outside, url: str) -> str:
    with pytest.raises(Unavailable) as caught:
        await got(door, Visit(url, wait_s=5))
    unknown = "localhost." in url and (caught.value.details or {})["kind"] == "connect"  # not every resolver knows it
    assert unknown or (caught.value.details or {})["kind"] == "refused", caught.value
    return caught.value.message


@pytest.mark.parametrize("host", FORMS)
async def test_no_form_of_a_private_address_is_reached(host: str) -> None:
    async with serving(lambda _: plain()) as (url, heads), outside() as door:
        await refused(door, f"http://{host}:{url.rpartition(':')[2]}/")
    assert not heads


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://a/", "gopher://a/", "http://", "http:///x", "//a/", "http://a:99999/", "http://u:p@a.example/",
     "javascript:1", "http://[::1", "http://" + "a" * 300 + "/", "http://a..b/"],
)  # fmt: skip
async def test_what_is_no_address_of_the_web_is_refused(url: str) -> None:
    async with outside() as door:
        assert await refused(door, url)


async def test_a_listed_host_is_reached_and_only_as_long_as_it_is_listed() -> None:
    listed = [Hosts(("127.0.0.1",))]
    async with (
        serving(lambda _: plain(b"hi", "200 OK", "connection: close")) as (url, _),
        outside(lambda: listed[0]) as door,
    ):
        assert await got(door, Visit(f"{url}/a")) == (200, f"{url}/a", b"hi")
        assert "not a public" in await refused(door, url.replace("127.0.0.1", "127.0.0.2"))
        listed[0] = Hosts()
        await refused(door, url)
        listed[0] = Hosts(("127.0.0.1",), blocked=("127.0.0.1",))
        assert "blocks" in await refused(door, url)


async def test_each_redirect_is_judged_anew_and_counted() -> None:
    def reply(head: str) -> bytes:
        if "/meta" in head:
            return plain(b"", "302 Found", "location: http://169.254.169.254/latest/meta-data")
        if "/file" in head:
            return plain(b"", "302 Found", "location: file:///etc/passwd")
        return plain(b"", "302 Found", "location: /again")

    async with serving(reply) as (url, heads), outside(Hosts(("127.0.0.1",))) as door:
        assert "169.254.169.254" in await refused(door, f"{url}/meta")
        assert "no address of the web" in await refused(door, f"{url}/file")
        heads.clear()
        assert "more than 3 times" in await refused(door, f"{url}/loop")
        assert len(heads) == 4


async def test_only_what_tells_nothing_goes_to_another_origin() -> None:
    async with serving(lambda _: plain(b"there")) as (other, there):
        turning = serving(lambda _: plain(b"", "307 Temporary", f"location: {other}/end"))
        async with turning as (url, _), outside(Hosts(("127.0.0.1",))) as door:
            sent = {
                "X-Subscription-Token": "s3cret",
                "Cookie": "s3cret",
                "X-Route": "s3cret",
                "accept": "text/html",
            }
            assert (await got(door, Visit(url, headers=sent)))[1:] == (f"{other}/end", b"there")
            with pytest.raises(Unavailable, match="meant for it alone"):
                await got(door, Visit(url, "POST", body=b"s3cret"))
    assert len(there) == 1
    assert "s3cret" not in there[0]
    assert "accept: text/html" in there[0]


async def test_a_small_answer_that_unpacks_to_a_large_one_comes_in_bounded_pieces() -> None:
    bomb = gzip.compress(b"\0" * (300 << 20), 9)
    assert len(bomb) < 400_000
    async with serving(lambda _: plain(bomb, "200 OK", "content-encoding: gzip")) as (url, _):
        async with outside(Hosts(("127.0.0.1",))) as door, door.open(Visit(url)) as answer:
            size = 0
            async for chunk in answer.chunks():
                assert len(chunk) <= 256 << 10
                size += len(chunk)
                if size > 1 << 20:
                    break
        assert size < 2 << 20


async def test_compression_that_is_whole_or_broken() -> None:
    text = b"".join(b"line %d\n" % number for number in range(200_000))
    packed = gzip.compress(text)

    def reply(head: str) -> bytes:
        return plain(packed if "/whole" in head else b"\x1f\x8bxxxxxxxxxxxxxxxxx", "200 OK", "content-encoding: gzip")

    async with serving(reply) as (url, _), outside(Hosts(("127.0.0.1",))) as door:
        async with door.open(Visit(f"{url}/whole")) as answer:
            assert await answer.read(8 << 20) == text
        with pytest.raises(Unavailable, match="broken"):
            await got(door, Visit(f"{url}/broken"))


def test_an_origin_is_scheme_host_and_port() -> None:
    assert origin("https://A.example./x") == origin("https://a.example:443/y") != origin("http://a.example/")
    with pytest.raises(Unavailable):
        origin("http://[::1")
