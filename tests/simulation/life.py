"""One process's life: the tasks it runs, and the point at which it dies."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Killed(asyncio.CancelledError):
    """The process is gone."""


class Life:
    """As `sdk.ports.Spawn`. Everything the process does to the world passes `go_on`; `fatal` is the passage at which it
    dies, in the middle of whatever it does. `faults` are the tasks that ended with a fault.
    """

    def __init__(self, fatal: int | None = None) -> None:
        self.dead = False
        self.died = asyncio.Event()
        self.faults: list[str] = []
        self._fatal, self._passed = fatal, 0
        self._running: dict[asyncio.Task[Any], None] = {}

    def __call__(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(self._watched(work, name), name=name)
        self._running[task] = None
        task.add_done_callback(lambda done: self._running.pop(done, None))
        task.add_done_callback(lambda _: work.close())  # cancelled before its first step, it was never awaited
        if self.dead:
            task.cancel()
        return task

    spawn = __call__

    async def _watched(self, work: Coroutine[Any, Any, Any], name: str) -> Any:
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - the judge has to see it, whatever it is
            self.faults.append(f"task {name} ended with {error!r}")
            return None

    def go_on(self) -> None:
        """Raises Killed where it does not."""
        if not self.dead:
            self._passed += 1
            if self._passed == self._fatal:
                self.dead = True
                self.died.set()
        if self.dead:
            raise Killed

    def spare(self) -> None:
        """It does not die by itself any more."""
        self._fatal = None

    async def end(self) -> None:
        """As SIGKILL: nothing of it does anything any more."""
        self.dead = True
        self.died.set()
        while self._running:
            running = list(self._running)
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=5.0)
