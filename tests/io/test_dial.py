"""Connections for platforms without HTTP: straight, through both kinds of proxy, under TLS, and guarded."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from garra.core.errors import Unavailable
from garra.io.http import GuardedHttp
from garra.sdk.ports import Via
from tests.io.test_http_tls import certificate, listening

__all__ = ["certificate"]


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        if line == b"silence\n":
            await asyncio.sleep(5)
        writer.write(b"> " + line)
        await writer.drain()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    inner_reader, inner = await asyncio.open_connection("127.0.0.1", port)

    async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            target.write(data)

    try:
        await asyncio.gather(pass_on(reader, inner), pass_on(inner_reader, writer))
    finally:
        inner.transport.abort()


async def _http_proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    if "Basic bWU6cEBzcw==" not in head:
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        await writer.drain()
        return
    writer.write(b"HTTP/1.1 200 Connected\r\nx: y\r\n\r\n")
    await _pipe(reader, writer, int(head.split()[1].rpartition(":")[2]))


async def _socks_proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    version, count = await reader.readexactly(2)
    ways = await reader.readexactly(count)
    assert version == 5
    writer.write(b"\x05%c" % ways[0])
    if ways == b"\x02":
        said = await reader.readexactly(1 + 1 + 2 + 1 + 4)
        writer.write(b"\x01\x00" if said == b"\x01\x02me\x04p@ss" else b"\x01\x01")
    await reader.readexactly(4)
    name = await reader.readexactly((await reader.readexactly(1))[0])
    port = int.from_bytes(await reader.readexactly(2))
    if name == b"nowhere.example":
        writer.write(b"\x05\x04\x00\x01" + bytes(6))
        return
    writer.write(b"\x05\x00\x00\x01" + bytes(6))
    await _pipe(reader, writer, port)


@pytest.fixture
async def door() -> AsyncIterator[GuardedHttp]:
    door = GuardedHttp()
    yield door
    await door.close()


async def _said(door: GuardedHttp, port: int, via: Via, *, tls: bool = False, host: str = "127.0.0.1") -> bytes:
    stream = await door.open(host, port, tls=tls, connect=5.0, via=via)
    try:
        await stream.write(b"hello\n")
        return await stream.read(timeout=5.0)
    finally:
        await stream.close()


@pytest.mark.parametrize("proxy", ["", "http://me:p%40ss@", "socks5://me:p%40ss@", "socks5://"])
async def test_each_way_out(door: GuardedHttp, certificate: Path, proxy: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    await asyncio.to_thread(context.load_cert_chain, certificate)
    serve = _socks_proxy if proxy.startswith("socks") else _http_proxy
    async with listening(_echo) as plain, listening(_echo, context) as secure, listening(serve) as between:
        way = f"{proxy}127.0.0.1:{between}" if proxy else None
        assert await _said(door, plain, Via(way)) == b"> hello\n"
        assert await _said(door, secure, Via(way, str(certificate)), tls=True) == b"> hello\n"
        with pytest.raises(Unavailable, match="certificate verify failed"):
            await _said(door, secure, Via(way), tls=True)


async def test_proxies_that_refuse(door: GuardedHttp) -> None:
    async with listening(_http_proxy) as http, listening(_socks_proxy) as socks:
        with pytest.raises(Unavailable, match="407"):
            await _said(door, 7, Via(f"http://127.0.0.1:{http}"))
        with pytest.raises(Unavailable, match="user and password"):
            await _said(door, 7, Via(f"socks5://me:wron@127.0.0.1:{socks}"))
        with pytest.raises(Unavailable, match="SOCKS answer 4"):
            await _said(door, 7, Via(f"socks5://127.0.0.1:{socks}"), host="nowhere.example")
    with pytest.raises(Unavailable, match="no address"):
        await _said(door, 7, Via("nonsense"))


async def test_silence_and_an_end_are_told_apart(door: GuardedHttp) -> None:
    async with listening(_echo) as port:
        stream = await door.open("127.0.0.1", port, tls=False)
        await stream.write(b"silence\n")
        with pytest.raises(Unavailable) as silent:
            await stream.read(timeout=0.05)
        assert silent.value.details == {"kind": "timeout"}
    with suppress(Unavailable):
        assert await stream.read(timeout=5.0) == b""
    await stream.close()
    with pytest.raises(Unavailable):
        await stream.write(b"more\n")


async def test_nobody_there(door: GuardedHttp) -> None:
    with pytest.raises(Unavailable) as refused:
        await door.open("127.0.0.1", 1, tls=False)
    assert refused.value.details == {"kind": "connect"}


async def test_the_owners_proxy_and_the_guard_hold_here_too() -> None:
    async with listening(_echo) as port, listening(_socks_proxy) as between:
        door = GuardedHttp(lambda: Via(f"socks5://127.0.0.1:{between}"))
        assert await _said(door, port, Via()) == b"> hello\n"
        await door.close()
        for way in (None, f"socks5://127.0.0.1:{between}"):
            guarded = GuardedHttp(guard=True)
            with pytest.raises(Unavailable, match="not a public address"):
                await guarded.open("127.0.0.1", port, tls=False, via=Via(way))
            await guarded.close()
