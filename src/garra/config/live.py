"""The configuration while the program runs: watched, reloaded, announced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from garra.config.load import Snapshot, load
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.config.write import Writer
from garra.io.env import Environment

log = logging.getLogger(__name__)

Subscriber = Callable[[Config, Config], None]


class Live:
    """Holds the snapshot that serves. Run `watch()` as a task to follow edits of the file."""

    def __init__(self, paths: Paths, env: Environment, snapshot: Snapshot | None = None) -> None:
        """Reads the file when no snapshot is given (so make it in a thread, or before the loop runs)."""
        self.paths = paths
        self.env = env
        self.writer = Writer(paths, env)
        self._snapshot = snapshot or load(paths, env)
        self._subscribers: list[Subscriber] = []

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    @property
    def config(self) -> Config:
        return self._snapshot.config

    def subscribe(self, changed: Subscriber) -> Callable[[], None]:
        """Call `changed(old, new)` on the event loop after each change that is valid. Gives what ends it."""
        self._subscribers.append(changed)
        return lambda: self._subscribers.remove(changed)

    async def reload(self) -> Snapshot:
        """Read the file again, now. A broken file leaves the old configuration serving."""
        self._snapshot = await asyncio.to_thread(load, self.paths, self.env)
        return self._snapshot

    async def watch(self, period_s: float = 1.0) -> None:
        """Follow the file until cancelled."""
        while True:
            await asyncio.sleep(period_s)
