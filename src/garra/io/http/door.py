"""Requests out: one pool of connections for each way out, redirects checked anew, every fault in our own words."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from garra.core.errors import Unavailable
from garra.io.http.ask import Ask
from garra.io.http.bound import Binding, Bounds
from garra.sdk.ports import DIRECT, Body, Spawn, Stream, Via, WebSocket

if TYPE_CHECKING:
    from garra.io.http.pool import Answered, Pools

_PLAIN = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "range", "user-agent"})
"""What goes along to another origin: of all other headers nobody knows whether they are a credential."""
_REDIRECTS = 5
Opened = Callable[..., Awaitable[Stream]]


class GuardedHttp:
    """`sdk.ports.Http` and `sdk.ports.Dial`. `via` is the default way out, or gives it anew for every request, so that
    a changed setting counts at once; `guard` refuses every address that is not public (a function: unless it says true
    of the host); `bound` are the secrets that may go to named hosts only, and are refused on the way to others.

    Answers are asked for uncompressed; a server that compresses all the same is understood for gzip and deflate.
    """

    def __init__(
        self,
        via: Via | Callable[[], Via] = DIRECT,
        *,
        guard: bool | Callable[[str], bool] = False,
        bound: Binding = lambda: (),
    ) -> None:
        self._via = via
        self._guard = guard
        self.bounds = Bounds(bound)
        self._pools: Pools | None = None

    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | tuple[bytes, ...] | None = None,
        timeout: float | None = 60.0,
        connect: float = 10.0,
        via: Via = DIRECT,
    ) -> AbstractAsyncContextManager[Body]:
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        sent.setdefault("accept-encoding", "identity")
        sent.setdefault("user-agent", "garra")
        return _Call(self, Ask(method.upper(), url, sent, body, timeout, connect, self._way(via)))

    async def open(self, host: str, port: int, *, tls: bool = True, connect: float = 15.0, via: Via = DIRECT) -> Stream:
        """As `sdk.ports.Dial`."""
        pools = await self.pools()
        opened: Opened = importlib.import_module("garra.io.http.dial").opened
        return await opened(pools, host, port, tls=tls, connect=connect, via=self._way(via))

    async def plug(
        self, host: str, port: int, spawn: Spawn, *, tls: bool = True, connect: float = 15.0, via: Via = DIRECT
    ) -> Any:
        """As `sdk.ports.Dial`."""
        stream = await self.open(host, port, tls=tls, connect=connect, via=via)
        return importlib.import_module("garra.io.http.plug").plugged(stream, spawn, f"{host}:{port}")

    async def trust(self, via: Via = DIRECT) -> Any:
        """As `sdk.ports.Dial`."""
        return await (await self.pools()).trust(self._way(via))

    async def websocket(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        connect: float = 15.0,
        limit: int = 16 << 20,
        via: Via = DIRECT,
    ) -> WebSocket:
        """As `sdk.ports.Dial`."""
        module = await asyncio.to_thread(importlib.import_module, "garra.io.http.websocket")
        parsed, host, port, tls = module.address(url)
        self.bounds.check(host, (url, *(headers or {}).values()))
        stream = await self.open(host, port, tls=tls, connect=connect, via=via)
        socket = module.made(stream, parsed, host, limit)
        try:
            await socket.shake({"user-agent": "garra", **(headers or {})}, connect)
        except BaseException:
            await stream.close()
            raise
        made: WebSocket = socket
        return made

    def client(self, via: Via = DIRECT) -> Any:
        """A pooled `httpx2.AsyncClient` whose faults are Unavailable. Loads that library: call it in a thread."""
        return self._loaded().client(self._way(via))

    async def warm(self) -> None:
        """Load what the first request needs, in a thread."""
        await asyncio.to_thread(self._loaded)

    async def close(self) -> None:
        if self._pools is not None:
            await self._pools.close()

    async def pools(self) -> Pools:
        if self._pools is None:
            return await asyncio.to_thread(self._loaded)
        return self._pools

    def way(self) -> Via:
        """The default way out, as it is now."""
        return self._way(DIRECT)

    def _way(self, via: Via) -> Via:
        usual = self._via if isinstance(self._via, Via) else self._via()
        if via == DIRECT:
            return usual
        return replace(via, proxy=via.proxy or usual.proxy, ca_file=via.ca_file or usual.ca_file)

    def _loaded(self) -> Pools:
        pools: Pools = self._pools or importlib.import_module("garra.io.http.pool").Pools(
            guard=self._guard, bounds=self.bounds
        )
        self._pools = pools
        return pools


class _Call(AbstractAsyncContextManager[Body]):
    """One request, redirects and all."""

    def __init__(self, door: GuardedHttp, ask: Ask) -> None:
        self._door = door
        self._ask = ask
        self._answer: Answered | None = None

    async def __aenter__(self) -> Body:
        pools = await self._door.pools()
        for _ in range(_REDIRECTS + 1):
            answer = await pools.send(self._ask)
            target = self._redirect(answer)
            if target is None:
                self._answer = answer
                return answer
            await answer.close()
            self._ask = _turned(self._ask, target)
        raise Unavailable(f"{self._ask.url} redirects too often", details={"kind": "refused"})

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._answer is not None:
            await self._answer.close()

    def _redirect(self, answer: Answered) -> str | None:
        """Where to go instead. A POST goes on only where the server says it stays one (307, 308)."""
        follows = {301, 302, 303, 307, 308} if self._ask.method in {"GET", "HEAD"} else {307, 308}
        location = answer.headers.get("location")
        return urljoin(self._ask.url, location) if answer.status in follows and location else None


def _turned(ask: Ask, target: str) -> Ask:
    """The same request to `target`; credentials stay behind when that is somewhere else."""
    before, after = urlsplit(ask.url), urlsplit(target)
    if after.scheme not in {"http", "https"} or (before.scheme == "https" and after.scheme == "http"):
        line = f"{before.netloc} redirects to {after.scheme}://, which is refused"
        raise Unavailable(line, details={"kind": "refused"})
    if (before.scheme, before.netloc) == (after.scheme, after.netloc):
        return replace(ask, url=target)
    kept = {name: value for name, value in ask.headers.items() if name in _PLAIN}
    return replace(ask, url=target, headers=kept)
