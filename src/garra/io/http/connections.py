"""Connections that stay open from one request to the next.

The library makes and drives each of them. Its own pool is left alone: it walks all connections twice for each request,
which many at once would feel.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable

import httpcore2

OPEN = 1_000
"""So many requests are under way at most; further ones wait their `pool` timeout."""

IDLE = 32
"""So many connections are kept for later at most, the ones used last."""

Made = httpcore2.AsyncConnectionInterface
_Place = tuple[bytes, bytes, int]


class Lent:
    """An answer whose head has come, and the connection it comes over."""

    def __init__(self, owner: Connections, place: _Place, connection: Made, response: httpcore2.Response) -> None:
        self._owner, self._place, self._connection = owner, place, connection
        self._open = True
        self.response = response

    async def close(self) -> None:
        """Give the connection back; one whose answer was not read to its end is closed."""
        if self._open:
            self._open = False
            try:
                await self.response.aclose()
            finally:
                await self._owner.take_back(self._place, self._connection)


class Connections:
    """All connections of one way out; `make` makes one more."""

    def __init__(self, make: Callable[[httpcore2.Origin], Made]) -> None:
        self._make = make
        self._room = asyncio.Semaphore(OPEN)
        self._busy: set[Made] = set()
        self._free: dict[_Place, deque[Made]] = {}
        self._idle: OrderedDict[Made, _Place] = OrderedDict()

    async def send(self, request: httpcore2.Request) -> Lent:
        """Send it and give the answer once its head has come; it is to be closed. Raises the library's faults."""
        await self._enter(request.extensions["timeout"]["pool"])
        try:
            return await self._lend(request)
        except BaseException:
            self._room.release()
            raise

    async def _lend(self, request: httpcore2.Request) -> Lent:
        origin = request.url.origin
        place = (origin.scheme, origin.host, origin.port)
        while True:
            connection = await self._kept(place) or self._make(origin)
            self._busy.add(connection)
            try:
                return Lent(self, place, connection, await connection.handle_async_request(request))
            except httpcore2.ConnectionNotAvailable:  # it closed just now
                self._busy.discard(connection)
            except BaseException:
                await self._leave(place, connection)
                raise

    async def _enter(self, wait_s: float | None) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._room.acquire()
        except TimeoutError:
            raise httpcore2.PoolTimeout(f"{OPEN} requests are under way") from None

    async def _kept(self, place: _Place) -> Made | None:
        """The connection to `place` that was used last, and that the other side has not closed."""
        while free := self._free.get(place):
            connection = free[-1]
            self._forget(connection)
            if connection.is_available() and not connection.has_expired():
                return connection
            await connection.aclose()
        return None

    def _forget(self, connection: Made) -> None:
        place = self._idle.pop(connection)
        free = self._free[place]
        free.remove(connection)
        if not free:
            del self._free[place]

    async def take_back(self, place: _Place, connection: Made) -> None:
        """What was lent is not needed any more."""
        self._room.release()
        await self._leave(place, connection)

    async def _leave(self, place: _Place, connection: Made) -> None:
        """Keep a connection for later, or close it; and close those that were kept too long."""
        self._busy.discard(connection)
        if connection.is_idle() and not connection.is_closed():
            self._free.setdefault(place, deque()).append(connection)
            self._idle[connection] = place
        else:
            await connection.aclose()
        while self._idle:
            oldest = next(iter(self._idle))
            if len(self._idle) <= IDLE and not oldest.has_expired():
                break
            self._forget(oldest)
            await oldest.aclose()

    async def close(self) -> None:
        """Close every connection, also those in use."""
        every = [*self._busy, *self._idle]
        self._busy.clear()
        self._idle.clear()
        self._free.clear()
        for connection in every:
            await connection.aclose()
