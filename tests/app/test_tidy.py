"""Memory is given back after turns, and nothing is done where there were none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from garra.app.tidy import EVERY_S, Tidy
from garra.core.events import RunEnded, RunEvent, RunPhase
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.io.tasks import Tasks
from garra.testing.clock import ManualClock

BEGUN = RunPhase("starting_model")
ENDED = RunEnded("ok", "done", None, None, 0, 1)


class Runs:
    def __init__(self) -> None:
        self.listeners: list[Callable[[RunEvent], None]] = []

    def subscribe(self, listener: Callable[[RunEvent], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: None

    def tell(self, body: RunEnded | RunPhase) -> None:
        event = RunEvent(RunId("r"), SessionKey("agent:main:main"), SessionId("s"), AgentId("main"), 1, 1, body)
        for listener in self.listeners:
            listener(event)


async def test_it_is_given_back_once_after_turns() -> None:
    runs, clock, times, done = Runs(), ManualClock(), [], threading.Event()

    def trim() -> None:
        times.append(round(clock.monotonic()))
        done.set()

    async with Tasks() as tasks:
        tasks(Tidy(runs, clock, trim).run(), "tidy")
        for body in (BEGUN, ENDED, BEGUN):
            runs.tell(body)
            await clock.advance(EVERY_S)
            assert body is not ENDED or await asyncio.to_thread(done.wait, 5)
    assert times == [round(2 * EVERY_S)]
