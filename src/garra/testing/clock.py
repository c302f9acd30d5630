"""A clock that stands until it is moved."""

from __future__ import annotations

import asyncio
import heapq


class ManualClock:
    """As `sdk.ports.Clock`. `advance` moves it and wakes who slept until then; a sleep never ends by itself."""

    def __init__(self, now_ms: int = 1_760_000_000_000) -> None:
        self._start = now_ms
        self._passed = 0.0
        self._order = 0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self._start + round(self._passed * 1000)

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._order += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + seconds, self._order, future))
        await future

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass; whoever wakes on the way runs before this returns."""
        until = self._passed + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= until:
            self._passed, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
            await settle()
        self._passed = until

    @property
    def sleeping(self) -> int:
        """How many wait."""
        return sum(not future.done() for _, _, future in self._sleepers)


async def settle(rounds: int = 20) -> None:
    """Let every task that can run do so."""
    for _ in range(rounds):
        await asyncio.sleep(0)
