"""Requests over the library's connections, at its lowest level: no cookies, no environment, no hidden redirects."""

from __future__ import annotations

import asyncio
import importlib
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpcore2

from garra.core.errors import Unavailable
from garra.io.http import net
from garra.io.http.ask import Ask
from garra.io.http.bound import Bounds
from garra.io.http.connections import Connections, Lent
from garra.sdk.ports import Via

_IDLE_S = 30.0
_ONE = 64 << 10
_PIECE = 256 << 10
_SAFE = "/%:@!$&'()*+,;=~-._?[]|"

_FAULTS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    ((httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.ProxyError), "connect", "no connection to {host}"),
    ((httpcore2.TimeoutException,), "timeout", "{host} did not answer in time"),
    ((httpcore2.UnsupportedProtocol, httpcore2.LocalProtocolError), "refused", "cannot ask {host}"),
    ((httpcore2.ProtocolError, httpcore2.NetworkError, OSError), "cut", "the connection to {host} broke"),
)


class Pools:
    """One pool for each way out, http and https apart: certificates are read only where they are needed."""

    def __init__(self, *, guard: net.Guard, bounds: Bounds | None = None) -> None:
        self._bounds = bounds
        self._pools: dict[tuple[Via, bool], Connections] = {}
        self._trusted: dict[str | None, ssl.SSLContext] = {}
        self._clients: dict[Via, Any] = {}
        self.guarded = guard
        self.direct, self.to_proxy = net.Network(guard=guard), net.Network(guard=False)

    async def send(self, ask: Ask) -> Answered:
        """Send it and give the answer once its head has come. Raises Unavailable."""
        target = _parsed(ask.url)
        host = target.host.decode()
        if self._bounds is not None:
            self._bounds.check_request(host, ask.url, ask.headers, ask.body)
        times = {"connect": ask.connect, "pool": ask.connect, "read": ask.wait, "write": ask.wait}
        with translated(host):
            pool = await self._pool(ask.via, secure=target.scheme == b"https")
            if self.guarded and ask.via.proxy:
                await net.addresses(host, target.port or 443, guard=self.guarded)
            answer = await pool.send(
                httpcore2.Request(
                    ask.method.encode(),
                    target,
                    headers=_headers(ask, target),
                    content=_content(ask),
                    extensions={"timeout": times},
                )
            )
        return Answered(answer, host)

    async def _pool(self, via: Via, *, secure: bool) -> Connections:
        pool = self._pools.get((via, secure))
        if pool is None:
            context = await self.trust(via) if secure else None
            library = httpcore2.AsyncConnectionPool(
                ssl_context=context,
                proxy=proxied(via.proxy),
                keepalive_expiry=_IDLE_S,
                network_backend=self.to_proxy if via.proxy else self.direct,  # the proxy is the owner's own
            )
            pool = self._pools.setdefault((via, secure), Connections(library.create_connection))
        return pool

    def client(self, via: Via) -> Any:
        """A client of the library's upper layer, on these pools."""
        if via not in self._clients:
            adapter = importlib.import_module("garra.io.http.adapter")  # only a vendor's SDK needs that layer
            library = importlib.import_module("httpx2")
            transport = adapter.Transport(self, via)
            self._clients[via] = library.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)
        return self._clients[via]

    async def trust(self, via: Via) -> ssl.SSLContext:
        """What certificates are checked by. Raises Unavailable."""
        return await asyncio.to_thread(self._context, via.ca_file)

    def _context(self, ca_file: str | None) -> ssl.SSLContext:
        """Blocks: reads certificates. `ca_file` adds to the system's own."""
        if ca_file not in self._trusted:
            context = httpcore2.default_ssl_context()
            if ca_file:
                try:
                    context.load_verify_locations(cafile=ca_file)
                except (OSError, ssl.SSLError) as error:
                    raise Unavailable(
                        f"caFile {ca_file}: {error.strerror or error}", details={"kind": "refused"}
                    ) from None
            self._trusted[ca_file] = context
        return self._trusted[ca_file]

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()
        for client in self._clients.values():
            await client.aclose()
        self._pools.clear()
        self._clients.clear()


class Answered:
    """`sdk.ports.Body`: an answer whose head has come."""

    def __init__(self, answer: Lent, host: str) -> None:
        self._answer = answer
        self._host = host
        self.url = ""
        self.status: int = answer.response.status
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.response.headers
        }

    async def chunks(self) -> AsyncIterator[bytes]:
        decoded = _decoder(self.headers.get("content-encoding", ""), self._host)
        with translated(self._host):
            async for chunk in self._answer.response.aiter_stream():
                for data in decoded(chunk):
                    yield data

    async def read(self, limit: int = 1 << 20) -> bytes:
        found = bytearray()
        async for chunk in self.chunks():
            found += chunk
            if len(found) > limit:
                raise Unavailable(f"{self._host} answered more than {limit} bytes", details={"kind": "limit"})
        return bytes(found)

    async def close(self) -> None:
        await self._answer.close()


@contextmanager
def translated(host: str) -> Iterator[None]:
    """The library's faults as Unavailable, with a line that names the host."""
    try:
        yield
    except net.Refused as refused:
        raise Unavailable(str(refused), details={"kind": "refused", "private": True}) from None
    except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
        raise _unavailable(error, host) from None
    except (httpcore2.UnsupportedProtocol, httpcore2.ProxyError, OSError) as error:
        raise _unavailable(error, host) from None


def _unavailable(error: Exception, host: str) -> Unavailable:
    kind, words = next((kind, words) for classes, kind, words in _FAULTS if isinstance(error, classes))
    said = " ".join(str(error).split())[:200]
    line = words.format(host=host) + (f": {said}" if said else "")
    return Unavailable(line, details={"kind": kind}, retryable=kind != "refused")


def _parsed(url: str) -> httpcore2.URL:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Unavailable(f"{url!r} is no address: {error}", details={"kind": "refused"}) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Unavailable(
            f"{url!r} is no address: write it as https://host/path", details={"kind": "refused"}
        ) from None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return httpcore2.URL(
        scheme=parts.scheme.encode(),
        host=_ascii(parts.hostname),
        port=port,
        target=quote(path, safe=_SAFE).encode(),
    )


def _ascii(host: str) -> bytes:
    try:
        return host.encode("idna")
    except UnicodeError as error:
        raise Unavailable(f"{host[:80]!r} is no host: {error}", details={"kind": "refused"}) from None


def _headers(ask: Ask, target: httpcore2.URL) -> list[tuple[bytes, bytes]]:
    host = target.host if target.port is None else b"%b:%d" % (target.host, target.port)
    listed = [(b"host", host)]
    listed += [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in ask.headers.items()]
    if ask.body is not None:
        listed.append((b"content-length", b"%d" % ask.size))
    return listed


def _content(ask: Ask) -> bytes | Pieces:
    """A small body goes out in one write."""
    if not isinstance(ask.body, tuple):
        return ask.body or b""
    return Pieces(ask.body) if ask.size > _ONE else b"".join(ask.body)


class Pieces:
    """A large body, from its beginning each time it is asked for; others have their turn between two pieces."""

    def __init__(self, pieces: tuple[bytes, ...]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
            await asyncio.sleep(0)


def proxied(address: str | None) -> httpcore2.Proxy | None:
    """The proxy as the library wants it. Raises Unavailable for what is no address."""
    if not address:
        return None
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https", "socks5", "socks5h"} or not parts.hostname:
        raise Unavailable(
            "the proxy setting is no address: write it as http://host:port or socks5://host:port",
            details={"kind": "refused"},
        )
    bare = f"{parts.scheme}://{parts.hostname}:{parts.port or 1080}"
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore2.Proxy(bare, auth=auth)


def _decoder(encoding: str, host: str) -> Callable[[bytes], Iterable[bytes]]:
    match encoding.strip().lower():
        case "" | "identity":
            return lambda chunk: (chunk,) if chunk else ()
        case "gzip" | "x-gzip":
            return _unpacking(31, host)
        case "deflate":
            return _unpacking(zlib.MAX_WBITS, host)
        case other:
            raise Unavailable(
                f"{host} answers in the encoding {other!r}, which was not asked for", details={"kind": "refused"}
            )


def _unpacking(form: int, host: str) -> Callable[[bytes], Iterator[bytes]]:
    """Unpacks in bounded pieces, so that whoever counts them can stop before a small chunk has become a large one."""
    unpacker = zlib.decompressobj(form)

    def unpacked(chunk: bytes) -> Iterator[bytes]:
        try:
            data = unpacker.decompress(chunk, _PIECE)
            while data:
                yield data
                full, rest = len(data) == _PIECE, unpacker.unconsumed_tail
                data = unpacker.decompress(rest, _PIECE) if full or rest else b""
        except zlib.error as error:
            raise Unavailable(f"{host} answers with broken compression: {error}", details={"kind": "cut"}) from None

    return unpacked
