"""The configuration while the program runs: watched, reloaded, announced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path as FilePath

from garra.config import trial
from garra.config.load import Snapshot, keep, load
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.config.write import Writer
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

Subscriber = Callable[[Config, Config], None]
Seen = tuple[tuple[int, int, int] | None, ...]


class Live:
    """Holds the snapshot that serves. Run `watch()` as a task to follow edits of the file.

    When the file breaks, the configuration that served goes on serving and `snapshot.valid` turns false.
    """

    def __init__(
        self, paths: Paths, env: Environment, snapshot: Snapshot | None = None, clock: Clock | None = None
    ) -> None:
        """Reads the file when no snapshot is given (so make it in a thread, or before the loop runs)."""
        self.paths = paths
        self.env = env
        self.writer = Writer(paths, env)
        self._clock = clock or SystemClock()
        trial.settle(paths, self.writer, self._clock.now_ms())
        self._snapshot = snapshot or load(paths, env)
        self._seen = self._look()
        self._subscribers: list[Subscriber] = []
        self._reverted: list[Callable[[Snapshot], None]] = []
        self._reloading = asyncio.Lock()
        with suppress(OSError):  # a read-only state folder keeps no copy
            keep(paths, self._snapshot)

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
        async with self._reloading:
            self._seen, found = await asyncio.to_thread(self._read)
            self._adopt(found)
        return self._snapshot

    async def change(self, make: Callable[[Writer], Snapshot]) -> Snapshot:
        """Write through `make` in a thread, such as `lambda writer: writer.set("gateway.port", 1)`, and adopt it.

        Raises what the writer raises.
        """
        await asyncio.to_thread(make, self.writer)
        return await self.reload()

    async def try_out(self, make: Callable[[Writer], Snapshot], hold_s: float) -> Snapshot:
        """Write through `make`; after `hold_s` seconds without `confirm` it is taken back, also after a restart.

        Raises Conflict when a change is on trial already, and what the writer raises.
        """
        until = self._clock.now_ms() + int(hold_s * 1000)
        await asyncio.to_thread(trial.begin, self.paths, self.writer, make, until)
        return await self.reload()

    async def confirm(self) -> bool:
        """Let the change on trial stay. False when none is."""
        return await asyncio.to_thread(trial.confirm, self.paths)

    async def on_trial(self) -> bool:
        """Whether a change waits to be confirmed, an earlier process's too."""
        return await asyncio.to_thread(trial.record(self.paths).exists)

    def on_reverted(self, listener: Callable[[Snapshot], None]) -> None:
        """Call `listener` on the event loop when a change on trial was taken back, so that its owner is told."""
        self._reverted.append(listener)

    async def _settle(self) -> None:
        if await asyncio.to_thread(trial.settle, self.paths, self.writer, self._clock.now_ms()) is not None:
            found = await self.reload()
            for listener in tuple(self._reverted):
                listener(found)

    async def watch(self, period_s: float = 1.0) -> None:
        """Follow the file, those it includes, the store of secrets, and a change on trial, until cancelled.

        Obeys `gateway.reload`.
        """
        while True:
            await self._clock.sleep(period_s)
            await self._settle()
            if self.config.gateway.reload.mode != "off" and await asyncio.to_thread(self._look) != self._seen:
                await self.reload()

    def _read(self) -> tuple[Seen, Snapshot]:
        seen = self._look()  # before the file is read: an edit meanwhile is then seen the next time
        found = load(self.paths, self.env, self._snapshot.secrets)
        with suppress(OSError):
            keep(self.paths, found)
        return seen, found

    def _look(self) -> Seen:
        """What the watched files look like from outside: a replaced file has another inode."""
        names = (self.paths.config_file, self.paths.secrets, *map(FilePath, self._snapshot.included))
        return tuple(_stamp(path) for path in names)

    def _adopt(self, found: Snapshot) -> None:
        old = self._snapshot
        if not found.valid:
            found = _serving(found, old)
            if old.valid:
                log.error(
                    "%s is not valid, the former configuration serves on: %s", self.paths.config_file, _why(found)
                )
            self._snapshot = found
            return
        self._snapshot = found
        for issue in found.warnings:
            if issue not in old.warnings:
                log.warning("%s: %s", issue.path, issue.message)
        if found.config != old.config or found.secrets != old.secrets:
            for changed in tuple(self._subscribers):
                changed(old.config, found.config)


def _serving(broken: Snapshot, old: Snapshot) -> Snapshot:
    """The broken file's snapshot, with what served before (its variables too) and the files to watch."""
    return replace(
        broken,
        config=old.config,
        env=old.env,
        secrets=old.secrets,
        bound=old.bound,
        source=old.source,
        included=broken.included or old.included,
    )


def _why(snapshot: Snapshot) -> str:
    return str(snapshot.issues[0]) if snapshot.issues else "unknown"


def _stamp(path: FilePath) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
