"""Connections for platforms that speak no HTTP, through the same way out: proxy, certificates, guard."""

from __future__ import annotations

import asyncio
import base64
import ssl

import httpcore2

from garra.io.http import net
from garra.io.http.pool import Pools, proxied, translated
from garra.sdk.ports import Via

_HEAD = 16 << 10
_NEVER = 3600.0
"""The whole attempt has its own limit."""
Raw = httpcore2.AsyncNetworkStream


class Stream:
    """`sdk.ports.Stream`."""

    def __init__(self, raw: Raw, host: str) -> None:
        self._raw, self._host = raw, host

    async def read(self, most: int = 1 << 16, timeout: float | None = None) -> bytes:
        with translated(self._host):
            return await self._raw.read(most, timeout)

    async def write(self, data: bytes) -> None:
        with translated(self._host):
            await self._raw.write(data, 60.0)

    async def close(self) -> None:
        await self._raw.aclose()


async def opened(pools: Pools, host: str, port: int, *, tls: bool, connect: float, via: Via) -> Stream:
    """Connect, through the proxy of `via` where it has one, and agree on TLS. Raises Unavailable."""
    with translated(host):
        try:
            async with asyncio.timeout(connect):
                raw = await _reached(pools, host, port, via)
                return Stream(await _secured(raw, await pools.trust(via), host) if tls else raw, host)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"no connection within {connect:g} s") from None


async def _reached(pools: Pools, host: str, port: int, via: Via) -> Raw:
    proxy = proxied(via.proxy)
    if proxy is None:
        return await pools.direct.connect_tcp(host, port, _NEVER)
    if pools.guarded:
        await net.addresses(host, port, guard=pools.guarded)
    name, scheme = proxy.url.host.decode(), proxy.url.scheme
    raw: Raw = await pools.to_proxy.connect_tcp(name, proxy.url.port or 1080, _NEVER)
    try:
        if scheme == b"https":
            raw = await _secured(raw, await pools.trust(via), name)
        await (_socks if scheme.startswith(b"socks") else _tunnel)(raw, host, port, proxy.auth)
    except BaseException:
        await raw.aclose()
        raise
    return raw


async def _secured(raw: Raw, context: ssl.SSLContext, host: str) -> Raw:
    try:
        return await raw.start_tls(context, host)
    except BaseException:
        await raw.aclose()
        raise


async def _tunnel(raw: Raw, host: str, port: int, named: tuple[bytes, bytes] | None) -> None:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if named:
        lines.append("Proxy-Authorization: Basic " + base64.b64encode(b":".join(named)).decode())
    await raw.write("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):  # one byte at a time: what follows the head is the platform's
        head += await _exactly(raw, 1)
        if len(head) > _HEAD:
            raise httpcore2.ProxyError("the proxy's answer has no end")
    status = head.split(b"\r\n", 1)[0].decode("latin-1")
    if status.split(" ")[1:2] != ["200"]:
        raise httpcore2.ProxyError(f"the proxy says {status[:100]}")


async def _socks(raw: Raw, host: str, port: int, named: tuple[bytes, bytes] | None) -> None:
    await raw.write(b"\x05\x01\x02" if named else b"\x05\x01\x00")
    chosen = (await _exactly(raw, 2))[1]
    if chosen == 2 and named:
        user, word = (part[:255] for part in named)
        await raw.write(b"\x01%c%b%c%b" % (len(user), user, len(word), word))
        if (await _exactly(raw, 2))[1] != 0:
            raise httpcore2.ProxyError("the proxy refuses its user and password")
    elif chosen != 0:
        raise httpcore2.ProxyError("the proxy wants another way to log in")
    name = host.encode("idna")
    await raw.write(b"\x05\x01\x00\x03%c%b%b" % (len(name), name, port.to_bytes(2)))
    _, refused, _, kind = await _exactly(raw, 4)
    size = {1: 4, 4: 16}.get(kind) or (await _exactly(raw, 1))[0]
    await _exactly(raw, size + 2)
    if refused:
        raise httpcore2.ProxyError(f"the proxy cannot reach it (SOCKS answer {refused})")


async def _exactly(raw: Raw, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = await raw.read(size - len(found))
        if not more:
            raise httpcore2.ProxyError("the proxy closed the connection")
        found += more
    return found
