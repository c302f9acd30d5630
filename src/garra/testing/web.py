"""A small HTTP server on loopback for fakes: one function answers every request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from garra.core.value import frozen


@frozen
class Request:
    """One request that came in. Header names are lower case; `path` has its query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = Callable[[Request], Awaitable[bytes | None]]
"""Gives the bytes of a whole answer; None cuts the connection."""


def answered(status: int, body: bytes, kind: str = "application/json") -> bytes:
    """A whole answer."""
    head = f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


@asynccontextmanager
async def serving(answer: Answer, port: int = 0, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """Serve until left; gives the address. `port` 0 is any that is free."""
    tasks: set[asyncio.Task[None]] = set()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        try:
            while (request := await _request(reader)) is not None:
                said = await answer(request)
                if said is None:
                    break
                writer.write(said)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the caller gave up, or the server closes
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(connection, host, port, limit=1 << 20)
    try:
        yield f"http://{host}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await server.wait_closed()


async def _request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split(" ", 2)
    return Request(method, path, headers, body)
