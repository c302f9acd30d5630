"""An event loop whose time is a number: when nothing can run, it moves to the next alarm. No clock, no thread.

Everything that waits by the loop's own alarms (`call_later`, `asyncio.timeout`) lives by the same time as everything
that waits by the `Clock` port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

START_MS = 1_760_000_000_000


class Stuck(AssertionError):
    """Everybody waits, and nobody will ever wake anybody."""


class Loop(asyncio.BaseEventLoop):
    """Calls into threads are done at once, in place: their order is the order they were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._passed = 0.0
        self._clock_resolution = 1e-6
        self._selector = self

    def time(self) -> float:
        return self._passed

    def select(self, timeout: float | None) -> list[Any]:
        """What the loop calls to wait: time passes."""
        if timeout is None:
            raise Stuck("everybody waits for ever")
        self._passed += timeout
        return []

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is handed to whoever waits, whatever it is
            future.set_exception(error)
        return future

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none: nothing of this loop is outside of it."""

    def _write_to_self(self) -> None:
        """Nobody sleeps who would have to be woken."""


class Clock:
    """The loop's time as `sdk.ports.Clock`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return START_MS + round(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, in a loop of its own."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(work)
