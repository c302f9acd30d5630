"""The kill switch: everything that works stops at once, and, where it is told so, nothing begins until it is let."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from garra.core.value import frozen
from garra.domains.exec.supervisor import Supervisor
from garra.io.store.shelf import Shelf
from garra.runs.runner import Runs
from garra.runs.subagents import Subagents
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

LIMIT_S: Final = 1.9
"""So long is waited for what was stopped to end; what has not is told."""
STOPPING: Final = "Everything is being stopped; send it again in a moment."
PAUSED: Final = "Work is paused: nothing is begun until `garra resume`, or /resume by an owner."
KEY: Final = "paused"
SHELF: Final = "switch"
"""Where the pause is kept."""


async def held(shelf: Shelf) -> str:
    """Why no run may begin, for a process that has no switch of its own; empty where none is paused."""
    return PAUSED if isinstance(await shelf.get(KEY), int) else ""


@frozen
class Works:
    """What can be stopped. `shut` are further things with processes of their own, such as the browser: each ends them
    and says what it ended, empty for nothing. `shelf` keeps the pause.
    """

    runs: Runs
    subagents: Subagents
    supervisor: Supervisor
    clock: Clock
    shelf: Shelf
    shut: tuple[Callable[[], Awaitable[str]], ...] = ()


@frozen
class Stopped:
    """What was stopped, in numbers; `more` in words. `left` runs had not ended in time."""

    runs: int = 0
    waiting: int = 0
    subagents: int = 0
    commands: int = 0
    more: tuple[str, ...] = ()
    left: int = 0
    took_ms: int = 0
    paused: bool = False

    @property
    def words(self) -> str:
        counted = (
            (self.runs, "run"), (self.waiting, "waiting message"), (self.subagents, "sub-agent"),
            (self.commands, "command"),
        )  # fmt: skip
        parts = [f"{number} {name}{'' if number == 1 else 's'}" for number, name in counted if number]
        found = ", ".join((*parts, *self.more))
        text = f"Stopped: {found}." if found else "Nothing was at work."
        if self.left:
            text += f" {self.left} had not ended after {LIMIT_S:g} s and will."
        return f"{text} {PAUSED}" if self.paused else text

    @property
    def body(self) -> dict[str, Any]:
        return {
            "runs": self.runs, "waiting": self.waiting, "subagents": self.subagents, "commands": self.commands,
            "more": list(self.more), "left": self.left, "tookMs": self.took_ms, "paused": self.paused,
            "text": self.words,
        }  # fmt: skip


class Switch:
    """`load` before the first run. `stopped_at`: what came before that moment and has not begun will not begin."""

    def __init__(self, works: Works) -> None:
        self._works = works
        self._free = asyncio.Event()
        self._free.set()
        self.since_ms = 0
        self.stopped_at = 0

    async def load(self) -> None:
        """A pause outlives the process."""
        found = await self._works.shelf.get(KEY)
        if isinstance(found, int):
            self._hold(found)

    @property
    def paused(self) -> bool:
        return self.since_ms > 0

    async def cleared(self) -> None:
        """Wait until work may begin."""
        await self._free.wait()

    def _hold(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self._free.clear()
        self._works.runs.held = PAUSED

    async def stop(self, *, pause: bool = False) -> Stopped:
        """Stop all there is. What cannot be written does not keep it from stopping; it is raised in the end."""
        works, began = self._works, self._works.clock.monotonic()
        self.stopped_at = works.clock.now_ms()
        works.runs.held = works.runs.held or STOPPING
        try:
            found = await self._stop()
        finally:
            works.runs.held = PAUSED if self.paused else ""
        if pause and not self.paused:
            self._hold(works.clock.now_ms())
            await works.shelf.set(KEY, self.since_ms, durable=True)
        took = round((works.clock.monotonic() - began) * 1000)
        log.warning("all work was stopped in %d ms%s", took, ", and none begins" if self.paused else "")
        return Stopped(*found, took_ms=took, paused=self.paused)

    async def resume(self) -> bool:
        """Let work begin again; False where it was let already."""
        was, self.since_ms = self.paused, 0
        await self._works.shelf.remove(KEY, durable=True)
        self._works.runs.held = ""
        self._free.set()
        if was:
            log.warning("work goes on")
        return was

    async def _stop(self) -> tuple[int, int, int, int, tuple[str, ...], int]:
        works = self._works
        hit = works.runs.cancel_all("stop")
        running = sum(run.state == "running" for run in hit)
        children = [child for child in works.subagents.every() if child.active]
        commands = sum(ran.status == "running" for each in works.supervisor.every().values() for ran in each)
        ends = [
            *(works.subagents.stop(child.key, quiet=True) for child in children),
            *(works.supervisor.stop(key, background=True) for key in works.supervisor.every()),
        ]
        shut = asyncio.gather(*(each() for each in works.shut), return_exceptions=True)
        everything = asyncio.gather(*ends, *(run.wait() for run in hit), shut, return_exceptions=True)
        try:
            async with asyncio.timeout(LIMIT_S):
                await asyncio.shield(everything)
        except TimeoutError:
            log.warning("not all had ended after %g s", LIMIT_S)
        more = tuple(each for each in shut.result() if isinstance(each, str) and each) if shut.done() else ()
        left = sum(run.state != "ended" for run in hit)
        return running, len(hit) - running, len(children), commands, more, left
