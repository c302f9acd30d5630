"""A small HTTP proxy for programs that are shut in: every connection is judged by host and port before it is made.

`CONNECT host:port` and `METHOD http://host/…` are understood. What the judge lets through is carried as it comes; of
the rest the program reads one line that says why.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

from garra.core.chunked import Chunked, passed
from garra.core.errors import Unavailable
from garra.core.patterns import later
from garra.core.value import frozen
from garra.sdk.ports import Dial, Spawn, Stream

HEAD = 32 << 10
HEAD_S, CONNECT_S, IDLE_S = 30.0, 20.0, 600.0
MOST = 64
"""Connections of one command at once."""
_PROXYS_OWN = frozenset({b"proxy-connection", b"proxy-authorization", b"connection", b"keep-alive"})
_BARE_END = later(rb"\r(?!\n)|(?<!\r)\n")
"""An end of a line that some servers take for one and we do not: behind it a header could hide."""


@frozen
class Refusal:
    """It may not be reached; the program that asked reads `reason`."""

    reason: str


@frozen
class Way:
    """It may be reached, through this door. `reached` hears that it was, `failed` why it was not."""

    dial: Dial
    host: str
    port: int
    reached: Callable[[], None]
    failed: Callable[[Unavailable], None]


Judge = Callable[[str, str], Way | Refusal]
"""Says of a host and a port, as the program wrote them, whether they may be reached."""


@frozen
class _Asked:
    host: str
    port: str
    head: bytes = b""
    """What the host is sent first; empty for a tunnel."""
    body: int | Chunked | None = None
    """So many bytes follow it, or chunks; None: it is a tunnel."""


class Relay:
    """The proxy behind one listening socket. `close` ends every connection."""

    def __init__(self, judge: Judge, spawn: Spawn) -> None:
        self._judge, self._spawn = judge, spawn
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def serve(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=HEAD)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MOST:
            writer.transport.abort()
            return
        self._open.add(writer)
        self._spawn(self._serve(reader, writer), "a way out of a sandbox")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._carry(reader, writer)
        except (OSError, TimeoutError, Unavailable):  # it broke: the program sees that
            pass
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await _asked(reader)
        found = self._judge(asked.host, asked.port) if asked else Refusal("this is an HTTP proxy, and that no request")
        if isinstance(found, Refusal):
            return await _say(writer, "403 Forbidden", found.reason)
        assert asked is not None
        try:
            stream = await found.dial.open(found.host, found.port, tls=False, connect=CONNECT_S)
        except Unavailable as error:
            found.failed(error)
            return await _say(writer, "502 Bad Gateway", error.message)
        found.reached()
        try:
            if asked.head:
                await stream.write(asked.head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._both(reader, writer, stream, asked.body)
        finally:
            await stream.close()

    async def _both(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: Stream, left: int | Chunked | None
    ) -> None:
        """Carry bytes until the host has closed, or nothing came from it for `IDLE_S`. Who asks for more than one
        thing over one connection is cut off: another host's request must not reach this one.
        """

        async def out() -> None:
            nonlocal left
            with contextlib.suppress(OSError, Unavailable):
                while data := await reader.read(1 << 16):
                    left, whole = _counted(left, data)
                    if not whole:
                        writer.transport.abort()
                        return
                    await stream.write(data)
                if once:  # who asked has gone
                    await stream.close()

        once = left is not None
        outward = self._spawn(out(), "a way out of a sandbox, outward")
        try:
            if once:
                writer.write(await _answer(stream))
            while data := await stream.read(timeout=IDLE_S):
                writer.write(data)
                await writer.drain()
        finally:
            outward.cancel()
        writer.close()
        await writer.wait_closed()


async def _asked(reader: asyncio.StreamReader) -> _Asked | None:
    """The host that the program wants, and what it is to be sent; None for what is no request."""
    try:
        async with asyncio.timeout(HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = head[:-4].split(b"\r\n")
    words = first.split(b" ")
    if _BARE_END.search(head) or len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return None
    if words[0] == b"CONNECT":
        host, _, port = words[1].decode("latin-1").rpartition(":")
        return _Asked(host, port)
    try:
        url = urlsplit(words[1].decode("latin-1"))
        number = url.port or 80
    except ValueError:
        return None
    if url.scheme != "http" or not url.hostname:
        return None
    target = url._replace(scheme="", netloc="").geturl() or "/"
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _PROXYS_OWN | {b"host"}]
    start = b" ".join((words[0], target.encode("latin-1"), words[2]))
    # the name that was judged, whatever the program calls it: one address may serve others
    named = b"Host: " + url.netloc.rpartition("@")[2].encode("latin-1")
    ready = b"\r\n".join((start, named, *kept, b"Connection: close", b"", b""))
    body = _body(kept)
    return None if body is None else _Asked(url.hostname, str(number), ready, body)


async def _answer(stream: Stream) -> bytes:
    """The beginning of an answer, told to be the only one over this connection."""
    said = b""
    while b"\r\n\r\n" not in said and len(said) < HEAD:
        data = await stream.read(timeout=IDLE_S)
        if not data:
            return said
        said += data
    head, end, rest = said.partition(b"\r\n\r\n")
    if head[9:10] == b"1":  # not yet the answer itself
        return head + end + (await _answer(_Begun(rest, stream)))
    first, *lines = head.split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _PROXYS_OWN]
    return b"\r\n".join((first, *kept, b"Connection: close")) + end + rest if end else said


class _Begun:
    """A stream of which some was read already."""

    def __init__(self, rest: bytes, stream: Stream) -> None:
        self._rest, self._stream = rest, stream

    async def read(self, most: int = 1 << 16, timeout: float | None = None) -> bytes:
        rest, self._rest = self._rest, b""
        return rest or await self._stream.read(most, timeout)

    async def write(self, data: bytes) -> None:
        await self._stream.write(data)

    async def close(self) -> None:
        await self._stream.close()


def _body(lines: list[bytes]) -> int | Chunked | None:
    """What follows a head; None where servers read it in two ways."""
    told = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    ways = [(name, value) for name, value in told if name in (b"content-length", b"transfer-encoding")]
    if not ways:
        return 0
    (name, value), *more = ways
    if more:
        return None
    if name == b"transfer-encoding":
        return Chunked() if value.lower() == b"chunked" else None
    return int(value) if value.isdigit() and len(value) < 20 else None


def _counted(left: int | Chunked | None, data: bytes) -> tuple[int | Chunked | None, bool]:
    """What is left of a body behind `data`, and whether all of that belongs to it."""
    if left is None:
        return None, True
    if isinstance(left, int):
        return left - len(data), len(data) <= left
    body, taken = passed(left, data)
    return body, taken == len(data)


async def _say(writer: asyncio.StreamWriter, status: str, reason: str) -> None:
    body = f"{reason}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    async with asyncio.timeout(HEAD_S):
        await writer.drain()
        writer.close()
        await writer.wait_closed()
