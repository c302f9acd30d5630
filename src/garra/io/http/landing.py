"""Where a login in a browser comes back to: one address on this machine, open for as long as the login takes."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable
from urllib.parse import urlsplit

from garra.core.errors import Forbidden, Unavailable, UserError

HEAD = 16 << 10
HEAD_S = 10.0
NAMES = ("127.0.0.1", "localhost", "[::1]")


class Landing:
    """`judge` gives the code in a query. It raises Forbidden for an answer that is not for this login, which then goes
    on, and any other UserError for one that ends it.
    """

    def __init__(self, judge: Callable[[str], str]) -> None:
        self._judge = judge
        self._server: asyncio.Server | None = None
        self._path = "/"
        self._port = 0
        self._code: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open(self, url: str) -> str:
        """Listen where `url` says; with port 0 on a free one. Gives the address as it then is. Raises Unavailable."""
        parts = urlsplit(url)
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", parts.port or 0, limit=HEAD)
        except OSError as error:
            line = f"port {parts.port} of this machine cannot be listened at: {error.strerror or error}"
            raise Unavailable(line) from None
        self._path, self._port = parts.path or "/", int(self._server.sockets[0].getsockname()[1])
        return f"http://{parts.hostname}:{self._port}{self._path}"

    async def code(self) -> str:
        """The code, when the browser has come back. Raises what the judge raised."""
        return await self._code

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if not self._code.done():
            self._code.cancel()
        elif not self._code.cancelled():
            self._code.exception()  # nobody may have waited for it

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status, words = self._answer(head)
            page = f"<!doctype html><meta charset=utf-8><title>Garra</title><p>{html.escape(words)}</p>".encode()
            writer.write(
                f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(page)}\r\n"
                "cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n"
                "content-security-policy: default-src 'none'\r\nconnection: close\r\n\r\n".encode()
                + page
            )
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it was no browser, or it left
        finally:
            writer.close()

    def _answer(self, head: str) -> tuple[str, str]:
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        hosts = [line.partition(":")[2].strip().lower() for line in lines if line.lower().startswith("host:")]
        if len(hosts) != 1 or hosts[0] not in {f"{name}:{self._port}" for name in NAMES}:
            return "403 Forbidden", "This address is for this machine only."
        if method != "GET" or target.path != self._path:
            return "404 Not Found", "There is nothing here."
        if self._code.done():
            return "410 Gone", "This login has ended already."
        try:
            self._code.set_result(self._judge(target.query))
        except Forbidden as error:
            return "400 Bad Request", error.message
        except UserError as error:
            self._code.set_exception(error)
            return "400 Bad Request", error.message
        return "200 OK", "You are logged in: go back to the terminal. This page can be closed."
