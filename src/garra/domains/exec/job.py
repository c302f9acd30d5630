"""One command that runs, or ran: its output, its end, and who may still wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable
from typing import Literal

from garra.core.clip import plain
from garra.core.value import frozen
from garra.core.ways import TAIL, unreached
from garra.domains.exec.egress import Passage
from garra.io.process.child import Child
from garra.io.process.output import Output
from garra.sdk.ports import Clock, Launch, Ran, Spawn

SHOW_EVERY_S = 0.2
SHOWN = 8_000
DRAIN_S = 0.5

Reason = Literal["exit", "timeout", "killed"]
Status = Literal["completed", "failed", "killed", "timeout", "running"]


@frozen
class Facts:
    """What is known of a command before it starts. `shut_in`: it can reach nobody and change nothing that matters."""

    id: str
    launch: Launch
    workdir: str
    timeout_s: float
    shut_in: bool = False


@frozen
class After:
    """What is left to do when a command has ended: close its way out, `undo` what its wrapper may have left, `free`
    what was held fast for it. `closed` is what the model is told where it had no way out and seems to have wanted one.
    """

    passage: Passage | None = None
    undo: Callable[[], Awaitable[object]] | None = None
    free: Callable[[], Awaitable[object]] | None = None
    closed: str = ""

    async def run(self) -> None:
        if self.passage is not None:
            await self.passage.close()
        if self.undo is not None:
            await self.undo()
        if self.free is not None:
            await self.free()


class Job:
    """A started command. A task of its own reads its output and ends it in time."""

    def __init__(self, facts: Facts, child: Child, clock: Clock, after: After | None = None) -> None:
        self.facts, self.child = facts, child
        self._after = after or After()
        self.output = Output()
        self.background = False
        self.ended = asyncio.Event()
        self.news = asyncio.Event()
        self.started_at = clock.now_ms()
        self.ended_at = 0.0
        self.polled = 0
        self._clock = clock
        self._began = clock.monotonic()
        self._took = 0.0
        self._reason: Reason = "exit"
        self._show: Callable[[str], None] | None = None
        self._shown = 0.0
        self._heard = asyncio.Event()

    def start(self, spawn: Spawn, show: Callable[[str], None]) -> None:
        self._show = show
        spawn(self._own(spawn), f"command {self.facts.id}")

    def to_background(self) -> None:
        self.background, self._show = True, None

    async def kill(self, reason: Reason = "killed") -> None:
        """End it with all it started; returns when it has."""
        if not self.ended.is_set():
            self._reason = reason
            await self.child.kill()
            await self.ended.wait()

    async def settle(self) -> None:
        """Wait a while for a person's word on what the command was refused."""
        if self._after.passage is not None:
            await self._after.passage.settle()

    async def _own(self, spawn: Spawn) -> None:
        spawn(self._hear(), f"output of {self.facts.id}")
        try:
            async with asyncio.timeout(self.facts.timeout_s or None):
                await self.child.wait()
        except TimeoutError:
            self._reason = "timeout"
        finally:
            await self.child.kill()
            await self._last_words()
            self.child.close()
            await self._after.run()
            self._took = self._clock.monotonic() - self._began
            self.ended_at = self._clock.monotonic()
            self.ended.set()
            self.news.set()

    async def _last_words(self) -> None:
        """What is still in the pipe; someone who left the group may hold it open, so not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._heard.wait()

    async def _hear(self) -> None:
        source = self.child.stdout
        try:
            while source is not None and (data := await source.read()):
                self.output.append(data)
                self.news.set()
                self._tell()
        finally:
            self._heard.set()

    def _tell(self) -> None:
        now = self._clock.monotonic()
        if self._show and now - self._shown >= SHOW_EVERY_S:
            self._shown = now
            self._show(plain(self.output.last(SHOWN)))

    @property
    def status(self) -> Status:
        if not self.ended.is_set():
            return "running"
        if self._reason != "exit":
            return self._reason
        return "completed" if (self.child.code or 0) >= 0 else "failed"

    def ran(self, text: str) -> Ran:
        code = self.child.code
        took = self._took if self.ended.is_set() else self._clock.monotonic() - self._began
        return Ran(
            self.status,
            text,
            exit_code=code if code is not None and code >= 0 else None,
            signal=_name(-code) if code is not None and code < 0 else None,
            session=self.facts.id if self.background else None,
            duration_ms=round(took * 1000),
            workdir=self.facts.workdir,
            truncated=self.output.missing > 0,
            command=self.facts.launch.command,
            pid=self.child.pid,
            started_at=self.started_at,
            reached=self._after.passage.reached if self._after.passage else (),
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        if self._after.passage is not None:
            return self._after.passage.notes()
        wanted = self._after.closed and self.ended.is_set() and self.child.code and unreached(self.output.last(TAIL))
        return (self._after.closed,) if wanted else ()

    def whole(self) -> Ran:
        return self.ran(plain(self.output.text()))

    def fresh(self) -> Ran:
        """What is new since the last time this was asked."""
        text, self.polled = plain(self.output.since(self.polled)), self.output.total
        self.news.clear()
        return self.ran(text)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
