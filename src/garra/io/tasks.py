"""Every task has an owner: it is named, its faults are logged, and it ends with its owner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class Tasks:
    """A group of running tasks, as `sdk.ports.Spawn`. Close it, or `async with` it, and they are gone."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def __call__(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        task = asyncio.create_task(self._watched(work, name), name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: work.close())  # cancelled before its first step, it was never awaited
        return task

    async def _watched(self, work: Coroutine[Any, Any, Any], name: str) -> Any:
        try:
            return await work
        except Exception:
            log.exception("task %s ended with a fault", name)
            return None

    def __len__(self) -> int:
        return len(self._running)

    async def close(self, grace_s: float = 0.0) -> None:
        """Wait `grace_s` for them, then cancel what still runs and wait for its end."""
        if self._running and grace_s > 0:
            await asyncio.wait(self._running, timeout=grace_s)
        while self._running:
            running = list(self._running)
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=5.0)

    async def __aenter__(self) -> Tasks:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
