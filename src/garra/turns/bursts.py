"""One chat's messages in the order they came, and those that come in a burst as one.

Who enters first holds the lane until it leaves; meanwhile others may join what it holds, as long as it is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

PATIENCE: Final = 10
"""A burst ends after so many quiet windows, though messages keep coming."""

MOST: Final = 50
"""So many messages make a burst at most."""


@dataclass(eq=False, slots=True)
class Burst(Generic[T, R]):
    """Messages that become one turn. `result` is set by who leads it, for all of them."""

    kind: object
    items: list[T]
    quiet_s: float
    result: asyncio.Future[R]
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    began: float = 0.0
    timer: asyncio.TimerHandle | None = None


@dataclass(eq=False, slots=True)
class _Lane(Generic[T, R]):
    """`line` are those who hold the lane (the first) and who wait for it, each with what tells them."""

    line: dict[object, asyncio.Event] = field(default_factory=dict)
    open: Burst[T, R] | None = None


class Bursts(Generic[T, R]):
    """All lanes, by chat."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, ...], _Lane[T, R]] = {}

    def __len__(self) -> int:
        return len(self._lanes)

    def open(self, key: tuple[str, ...], kind: object) -> Burst[T, R] | None:
        """The burst of this `kind` that may be joined now."""
        lane = self._lanes.get(key)
        burst = lane.open if lane else None
        return burst if burst is not None and not burst.closed.is_set() and burst.kind == kind else None

    def join(self, key: tuple[str, ...], burst: Burst[T, R], item: T, quiet_s: float) -> bool:
        """Put `item` to `burst`; False when it has been closed meanwhile, then lead another one."""
        if self.open(key, burst.kind) is not burst:
            return False
        burst.items.append(item)
        if len(burst.items) >= MOST:
            self.close(key)
        else:
            self._wind(burst, quiet_s)
        return True

    def close(self, key: tuple[str, ...]) -> None:
        """Nobody joins the open burst any more, and its leader goes on at once."""
        lane = self._lanes.get(key)
        if lane is not None and lane.open is not None:
            _end(lane.open)
            lane.open = None

    def lead(self, key: tuple[str, ...], kind: object, item: T, quiet_s: float) -> Burst[T, R]:
        """A new burst, open from now on, with its place in the lane; `enter` to wait for both, or `leave`."""
        self.close(key)
        loop = asyncio.get_running_loop()
        burst: Burst[T, R] = Burst(kind, [item], quiet_s, loop.create_future(), began=loop.time())
        lane = self._stand(key, burst)
        if quiet_s > 0:
            lane.open = burst
            self._wind(burst, quiet_s)
        else:
            burst.closed.set()
        return burst

    @asynccontextmanager
    async def enter(self, key: tuple[str, ...], place: object = None) -> AsyncIterator[None]:
        """Hold the lane; those who come later wait, in order. `place` is a burst that stands in it already."""
        place = place or object()
        lane = self._stand(key, place)
        try:
            await lane.line[place].wait()
            yield
        finally:
            self.leave(key, place)

    def leave(self, key: tuple[str, ...], place: object) -> None:
        """Give up a place; the next one holds the lane. Harmless when it is given up already."""
        lane = self._lanes.get(key)
        if lane is None or lane.line.pop(place, None) is None:
            return
        if lane.line:
            next(iter(lane.line.values())).set()
        elif lane.open is None or lane.open is place:
            del self._lanes[key]

    def _stand(self, key: tuple[str, ...], place: object) -> _Lane[T, R]:
        lane = self._lanes.setdefault(key, _Lane())
        lane.line.setdefault(place, asyncio.Event())
        next(iter(lane.line.values())).set()
        return lane

    async def settle(self, key: tuple[str, ...], burst: Burst[T, R]) -> list[T]:
        """Wait until the burst has ended; all that belongs to it."""
        await burst.closed.wait()
        lane = self._lanes.get(key)
        if lane is not None and lane.open is burst:
            lane.open = None
        return burst.items

    def _wind(self, burst: Burst[T, R], quiet_s: float) -> None:
        loop = asyncio.get_running_loop()
        if burst.timer is not None:
            burst.timer.cancel()
        burst.quiet_s = max(burst.quiet_s, quiet_s)
        at = min(loop.time() + burst.quiet_s, burst.began + PATIENCE * burst.quiet_s)
        burst.timer = loop.call_at(at, burst.closed.set)


def _end(burst: Burst[T, R]) -> None:
    if burst.timer is not None:
        burst.timer.cancel()
    burst.closed.set()
