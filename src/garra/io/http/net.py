"""Sockets for the HTTP pools: one buffer a connection, and, where wanted, no way to an address that is not public."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

import httpcore2

from garra.core.addresses import public

_FULL = 256 << 10
Guard = bool | Callable[[str], bool]
"""True: only public addresses. A function: those, and all of a host for which it says true."""


class Refused(Exception):
    """The guard does not let this address be reached."""


async def addresses(host: str, port: int, *, guard: Guard) -> list[str]:
    """The addresses of `host`, resolved once; with `guard` all must be public. Raises Refused and OSError."""
    if callable(guard):
        guard = not guard(host)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    listed = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if guard:
        closed = [address for address in listed if not public(address)]
        if closed:
            resolved = "" if host == closed[0] else f" ({closed[0]})"
            raise Refused(f"{host} is not a public address{resolved}")
    return listed


class Network(httpcore2.AsyncNetworkBackend):
    """Opens connections. With `guard`, what was judged is what is connected to: the name is resolved once."""

    def __init__(self, *, guard: Guard) -> None:
        self._guard = guard

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        *_options: Any,
        **_named: Any,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                return await self._first(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"no answer within {timeout:g} s") from None
        except OSError as error:
            raise httpcore2.ConnectError(error.strerror or str(error)) from None

    async def _first(self, host: str, port: int) -> Connection:
        """The first address that answers."""
        tried = await addresses(host, port, guard=self._guard)
        loop = asyncio.get_running_loop()
        for address in tried[:-1]:
            try:
                return Connection(*await loop.create_connection(Wire, address, port))
            except OSError:
                continue
        return Connection(*await loop.create_connection(Wire, tried[-1], port))


class Wire(asyncio.Protocol):
    """What arrives on one connection, until somebody reads it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.buffer = bytearray()
        self.over = False
        self.error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if len(self.buffer) > _FULL and self.transport is not None:
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self.over = True
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.over, self.error = True, exc
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def drained(self) -> None:
        await self._writable.wait()

    async def arrived(self) -> None:
        """Wait until there is something to read, or nothing will come any more."""
        while not self.buffer and not self.over:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader

    def take(self, most: int) -> bytes:
        taken = bytes(self.buffer[:most])
        del self.buffer[:most]
        if len(self.buffer) < _FULL and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()
        return taken

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class Connection(httpcore2.AsyncNetworkStream):
    """One connection, plain or under TLS."""

    def __init__(self, transport: asyncio.Transport, wire: Wire) -> None:
        self._transport = transport
        self._wire = wire

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self._wire.buffer and not self._wire.over:
            try:
                async with asyncio.timeout(timeout):
                    await self._wire.arrived()
            except TimeoutError:
                raise httpcore2.ReadTimeout(f"nothing for {timeout:g} s") from None
        if not self._wire.buffer and self._wire.error is not None:
            raise httpcore2.ReadError(str(self._wire.error))
        return self._wire.take(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        if self._transport.is_closing():
            raise httpcore2.WriteError("the connection is closed")
        self._transport.write(buffer)
        try:
            async with asyncio.timeout(timeout):
                await self._wire.drained()
        except TimeoutError:
            raise httpcore2.WriteTimeout(f"nothing taken for {timeout:g} s") from None
        if self._wire.error is not None:
            raise httpcore2.WriteError(str(self._wire.error))

    async def aclose(self) -> None:
        self._transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        wire = Wire()
        try:
            async with asyncio.timeout(timeout):
                transport = await loop.start_tls(self._transport, wire, ssl_context, server_hostname=server_hostname)
        except TimeoutError:
            self._transport.abort()
            raise httpcore2.ConnectTimeout(f"TLS was not agreed within {timeout:g} s") from None
        except OSError as error:  # ssl.SSLError is one
            self._transport.abort()
            raise httpcore2.ConnectError(str(error)) from None
        if transport is None:
            raise httpcore2.ConnectError("the connection closed while TLS was agreed")
        wire.connection_made(transport)
        return Connection(transport, wire)

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "is_readable":  # asked of idle connections only: then it means closed
                return bool(self._wire.buffer) or self._wire.over or self._transport.is_closing()
            case "ssl_object":
                return self._transport.get_extra_info("ssl_object")
            case "client_addr":
                return self._transport.get_extra_info("sockname")
            case "server_addr":
                return self._transport.get_extra_info("peername")
            case _:
                return self._transport.get_extra_info("socket") if info == "socket" else None
