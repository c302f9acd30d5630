"""The outbound door against real servers on loopback."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from garra.core.errors import Unavailable
from garra.io.http import GuardedHttp
from garra.sdk.ports import Http, Via


class Heads(list[str]):
    """The heads of the requests that came in, and from which sockets."""

    peers: set[object]


Reply = Callable[[str], bytes | Awaitable[bytes]]


def plain(body: bytes = b"ok", status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def serving(reply: Reply) -> AsyncIterator[tuple[str, Heads]]:
    """A server that answers each request with `reply(head)`; gives its address and the heads it saw."""
    heads = Heads()
    heads.peers = set()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                size = next(
                    (int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")), 0
                )
                await reader.readexactly(size)
                heads.append(head)
                heads.peers.add(writer.get_extra_info("peername"))
                answer = reply(head)
                writer.write(answer if isinstance(answer, bytes) else await answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


@pytest.fixture
async def http() -> AsyncIterator[GuardedHttp]:
    door = GuardedHttp()
    yield door
    await door.close()


async def read(door: Http, url: str, **more: object) -> bytes:
    async with door.stream("GET", url, **more) as body:  # type: ignore[arg-type]
        return await body.read()


async def kind(door: Http, url: str, **more: object) -> str:
    with pytest.raises(Unavailable) as caught:
        await read(door, url, **more)
    assert "\n" not in caught.value.message
    return str((caught.value.details or {})["kind"])


async def test_one_connection_serves_many_requests(http: GuardedHttp) -> None:
    async with serving(lambda _: plain(b"hello")) as (url, heads):
        assert [await read(http, f"{url}/a?b=c d") for _ in range(3)] == [b"hello"] * 3
    assert len(heads) == 3
    assert len(heads.peers) == 1
    assert heads[0].startswith("GET /a?b=c%20d HTTP/1.1")


async def test_it_sends_body_and_headers_once(http: GuardedHttp) -> None:
    asked = {"X-One": "1"}
    async with serving(lambda _: plain()) as (url, heads), http.stream("post", url, headers=asked, body=b"xyz") as body:
        assert (body.status, await body.read()) == (200, b"ok")
    assert heads[0].lower().count("content-length: 3") == 1
    assert "x-one: 1" in heads[0].lower()
    assert "accept-encoding: identity" in heads[0].lower()


async def test_redirects_leave_credentials_behind_elsewhere(http: GuardedHttp) -> None:
    async with serving(lambda _: plain(b"there")) as (other, heads):

        def reply(head: str) -> bytes:
            target = "/same" if "/start" in head else f"{other}/end"
            return plain(b"", "302 Found", f"location: {target}")

        async with serving(reply) as (url, first):
            secret = {"authorization": "Bearer s", "x-api-key": "s", "x-own": "s", "accept": "text/plain"}
            assert await read(http, f"{url}/start", headers=secret) == b"there"
    assert "Bearer s" in first[1]
    assert "Bearer" not in heads[0]
    assert "x-api-key" not in heads[0].lower()
    assert "x-own" not in heads[0].lower()
    assert "accept: text/plain" in heads[0].lower()


async def test_a_post_is_not_turned_into_something_else(http: GuardedHttp) -> None:
    moved = plain(b"moved", "302 Found", "location: /x")
    async with serving(lambda _: moved) as (url, heads), http.stream("POST", url, body=b"x") as body:
        assert body.status == 302
    assert len(heads) == 1


@pytest.mark.parametrize(("location", "words"), [("ftp://x/", "refused"), ("/again", "too often")])
async def test_bad_redirects_are_refused(http: GuardedHttp, location: str, words: str) -> None:
    async with serving(lambda _: plain(b"", "302 Found", f"location: {location}")) as (url, _):
        with pytest.raises(Unavailable, match=words):
            await read(http, url)


async def test_faults_in_our_own_words(http: GuardedHttp) -> None:
    async def late() -> bytes:
        await asyncio.sleep(5)
        return plain()

    async with serving(lambda _: late()) as (url, _):
        assert await kind(http, url, timeout=0.05) == "timeout"
    assert await kind(http, url) == "connect"
    assert await kind(http, "no address") == "refused"
    assert await kind(http, "http://x:99999/") == "refused"
    async with serving(lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc") as (url, _):
        assert await kind(http, url, timeout=0.05) == "timeout"
    async with serving(lambda _: b"nonsense\r\n\r\n") as (url, _):
        assert await kind(http, url) == "cut"
    async with serving(lambda _: plain(b"x" * 100)) as (url, _), http.stream("GET", url) as body:
        with pytest.raises(Unavailable, match="more than 10 bytes"):
            await body.read(10)


async def test_a_server_that_compresses_unasked_is_understood(http: GuardedHttp) -> None:
    async with serving(lambda _: plain(gzip.compress(b"words"), "200 OK", "content-encoding: gzip")) as (url, _):
        assert await read(http, url) == b"words"
    async with serving(lambda _: plain(b"?", "200 OK", "content-encoding: br")) as (url, _):
        assert await kind(http, url) == "refused"


async def test_through_a_proxy_with_its_credentials(http: GuardedHttp) -> None:
    async with serving(lambda _: plain(b"by proxy")) as (proxy, heads):
        via = Via(proxy=proxy.replace("://", "://me:p%40ss@"))
        assert await read(http, "http://far.example/x", via=via) == b"by proxy"
    assert heads[0].startswith("GET http://far.example/x")
    assert "proxy-authorization: basic bwu6cebzcw==" in heads[0].lower()
    assert await kind(http, "http://far.example/x", via=Via(proxy="nonsense")) == "refused"


async def test_the_owners_proxy_is_the_default() -> None:
    async with serving(lambda _: plain(b"by proxy")) as (proxy, heads):
        settings = [Via(proxy="http://127.0.0.1:1"), Via(proxy=proxy)]
        door = GuardedHttp(lambda: settings[0])
        assert await kind(door, "http://far.example/") == "connect"
        settings.pop(0)
        assert await read(door, "http://far.example/") == b"by proxy"
        await door.close()
    assert len(heads) == 1


async def test_certificates_of_ones_own_must_be_there(http: GuardedHttp, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="caFile"):
        await read(http, "https://127.0.0.1:1/", via=Via(ca_file=str(tmp_path / "none.pem")))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "[::ffff:127.0.0.1]"])
async def test_the_guard_lets_no_private_address_be_reached(host: str) -> None:
    door = GuardedHttp(guard=True)
    assert await kind(door, f"http://{host}:1/") == "refused"
    await door.close()


async def test_the_guard_looks_at_redirects_too() -> None:
    door = GuardedHttp(guard=True)
    away = "location: http://127.0.0.1:1/"
    async with serving(lambda _: plain(b"", "302 Found", away)) as (proxy, heads):
        assert await kind(door, "http://1.1.1.1/", via=Via(proxy=proxy)) == "refused"
    await door.close()
    assert len(heads) == 1


async def test_a_vendors_client_goes_the_same_way(http: GuardedHttp) -> None:
    async with serving(lambda _: plain(b"hello")) as (url, heads):
        client = await asyncio.to_thread(http.client)
        answer = await client.post(url, content=b"x", headers={"x-one": "1"})
        assert (answer.status_code, answer.content) == (200, b"hello")
        assert http.client() is client
    assert heads[0].lower().count("content-length") == 1
    with pytest.raises(Unavailable):
        await client.get(url)
