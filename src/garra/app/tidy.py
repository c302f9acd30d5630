"""What a process that lives long does for its memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from garra.core.events import RunEnded, RunEvent
from garra.io import heap
from garra.sdk.ports import Clock

EVERY_S: Final = 30.0


class Runs(Protocol):
    """As `runs.runner.Runs`."""

    def subscribe(self, listener: Callable[[RunEvent], None]) -> Callable[[], None]: ...


class Tidy:
    """Where turns ended since it last looked, gives back to the system what they left free."""

    def __init__(self, runs: Runs, clock: Clock, trim: Callable[[], None] = heap.trim) -> None:
        self._clock, self._trim = clock, trim
        self._used = False
        runs.subscribe(self._heard)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(EVERY_S)
            if self._used:
                self._used = False
                await asyncio.to_thread(self._trim)

    def _heard(self, event: RunEvent) -> None:
        self._used = self._used or isinstance(event.body, RunEnded)
