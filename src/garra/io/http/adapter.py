"""Our pools as a transport of the library above them, for vendors' SDKs: the same guard, the same faults."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING

import httpx2

from garra.io.http.ask import Ask
from garra.sdk.ports import Via

if TYPE_CHECKING:
    from garra.io.http.pool import Answered, Pools


class Transport(httpx2.AsyncBaseTransport):
    """Sends what the client built; raises Unavailable where the connection fails, also while a body is read."""

    def __init__(self, pools: Pools, via: Via) -> None:
        self._pools = pools
        self._via = via

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        times = request.extensions.get("timeout", {})
        headers = {name.lower(): value for name, value in request.headers.items()}
        for name in ("host", "content-length", "transfer-encoding", "connection"):
            headers.pop(name, None)
        headers["accept-encoding"] = "identity"
        assert isinstance(request.stream, AsyncIterable), "an async client's request"
        body = tuple([piece async for piece in request.stream if piece])
        ask = Ask(
            request.method,
            str(request.url),
            headers,
            body if body or request.method != "GET" else None,
            times.get("read"),
            times.get("connect"),
            self._via,
        )
        answer = await self._pools.send(ask)
        told = [(name, value) for name, value in answer.headers.items() if name != "content-encoding"]  # undone already
        return httpx2.Response(answer.status, headers=told, stream=_Chunks(answer), request=request)


class _Chunks(httpx2.AsyncByteStream):
    def __init__(self, answer: Answered) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._answer.chunks():
            yield chunk

    async def aclose(self) -> None:
        await self._answer.close()
