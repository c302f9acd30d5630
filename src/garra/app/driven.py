"""The table of runs, and what drives them."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from garra.app import queues
from garra.app.turnstile import Turnstile
from garra.core import taint
from garra.core.errors import NotFound, UserError
from garra.core.events import EntryStored, Noticed, RunBody, RunEnded
from garra.core.ids import RunId, SessionId
from garra.core.messages import Text, User
from garra.domains.context import stamps
from garra.domains.sessions.renewed import BEFORE
from garra.domains.sessions.transcript import Transcript
from garra.io.files.root import Root
from garra.io.tasks import Tasks
from garra.runs import chore
from garra.runs.assemble import Assembler, Parts
from garra.runs.compaction import Gauge
from garra.runs.drive import Driver, said
from garra.runs.engine import Assembly
from garra.runs.lane import Lane
from garra.runs.renewal import PEOPLES, Renewal
from garra.runs.run import Run, Turn
from garra.runs.runner import Ports, Runs

log = logging.getLogger(__name__)


def runs(
    parts: Parts,
    assembler: Assembler,
    spawn: Tasks,
    first_pick: Callable[[Turn], Awaitable[None]],
    *,
    turnstile: Turnstile | None,
) -> Runs:
    """The table of runs and what drives them; the two know each other through one event sink."""
    return _Driven(parts, assembler, first_pick, turnstile).table(spawn)


class _Driven:
    """What the table asks for: a session for each turn, its words on the disk, its run."""

    def __init__(
        self,
        parts: Parts,
        assembler: Assembler,
        first_pick: Callable[[Turn], Awaitable[None]],
        turnstile: Turnstile | None,
    ) -> None:
        self._parts, self._assembler = parts, assembler
        self._first_pick, self._turnstile = first_pick, turnstile
        self._renewal = Renewal(parts.sessions, parts.live, parts.clock, assembler.folder)
        self._runs: Runs | None = None

    def table(self, spawn: Tasks) -> Runs:
        parts = self._parts
        self._spawn = spawn
        self._driver = Driver(parts.clock, spawn, self._assembler.setup, self._emit, parts.purse, parts.smaller)
        if parts.fitting is not None:
            parts.fitting.emit = self._emit
        ports = Ports(parts.clock, spawn, self._enrol, self._keep, self._drive, lambda: queues.settings(parts.live))
        self._runs = Runs(ports)
        return self._runs

    def _emit(self, run: Run, body: RunBody) -> None:
        assert self._runs is not None
        self._runs.emit(run, body)

    async def _enrol(self, turn: Turn) -> SessionId:
        config = self._parts.live.config
        if turn.agent_id not in config.agents.ids():
            raise NotFound(f"There is no agent {turn.agent_id}; there is {', '.join(config.agents.ids())}.")
        await self._first_pick(turn)
        if self._turnstile is None:
            return await self._session(turn)
        await self._turnstile.enter(turn.session_key)
        try:
            return await self._session(turn)
        except BaseException:
            await self._turnstile.leave(turn.session_key)
            raise

    async def _session(self, turn: Turn) -> SessionId:
        """Its session, which begins anew first where that is due; never while something runs or waits in it."""
        assert self._runs is not None
        if not (turn.chore or turn.session_id) and turn.origin in PEOPLES:
            busy = any(run.session_key == turn.session_key for run in self._runs.every())
            if not busy:
                await self._renewal.begin(turn, self._ending)
        session = await self._parts.sessions.ensure(
            turn.session_key,
            agent_id=turn.agent_id,
            cwd=str(self._assembler.folder(turn.agent_id)),
            session_id=turn.session_id,
        )
        return session.session_id

    async def _ending(self, turn: Turn) -> None:
        """A conversation ends by itself: its agent saves what should last, while the new one goes on already."""
        run = Run(
            replace(turn, run_id=RunId(f"ending-{turn.run_id}"), text="", images=(), chore=chore.SAVE),
            (await self._parts.sessions.need(turn.session_key)).session_id,
            self._parts.clock.now_ms(),
        )
        try:
            fit = (await self._assembler.setup(run)).fit
        except UserError as error:
            log.info("%s: nothing is saved before it begins anew: %s", turn.session_key, error.message)
            return
        gauge = fit.inner if isinstance(fit, Assembly) else fit
        save = gauge.saving() if isinstance(gauge, Gauge) else None
        if save is not None and await self._parts.purse.may(run) is None:
            self._spawn(save(), "what should last")

    async def _keep(self, run: Run) -> None:
        if run.turn.chore:
            return
        if line := self._renewal.told(run):
            run.notices.append(line)
            self._emit(run, Noticed(line))
        transcript = await self._parts.sessions.transcript(run.session_key)
        if said(transcript.messages(), run.prompt):
            return  # the run is resumed after a crash
        await self._open(run, transcript)
        run.prompt = await self._parts.smaller(run.prompt)
        entry = await transcript.append(run.prompt)
        self._emit(run, EntryStored(entry.body))

    async def _open(self, run: Run, transcript: Transcript) -> None:
        """A conversation that was begun anew by hand begins with the newest of the diary."""
        if len(transcript.messages()) > 1 or any(entry.type == "message" for entry in transcript.entries()):
            return
        parts, config = self._parts, self._parts.live.config
        session, settings = await parts.sessions.need(run.session_key), config.agents.defaults.startup_context
        if BEFORE not in session.extra or config.plugins.slots.memory == "none":
            return
        opening: Any = importlib.import_module("garra.runs.opening")  # few conversations begin so
        if not opening.wanted(run, session, settings) or opening.told(transcript.entries()):
            return
        zone = await asyncio.to_thread(stamps.zone, config.time_zone or "UTC")
        files = Root(str(self._assembler.folder(run.agent_id)), parts.paths.private)
        told = await asyncio.to_thread(opening.body, files, parts.clock.now_ms(), zone, settings)
        if told is not None:
            await transcript.note("custom_message", told)

    async def _drive(self, run: Run, lane: Lane, brief: str) -> RunEnded:
        if not run.turn.chore:
            return await self._driver.drive(run, lane, brief)
        parts = self._parts
        if brief:
            news = User((Text(brief),), parts.clock.now_ms(), taint.stored(run.left_out))
            await (await parts.sessions.transcript(run.session_key)).append(news)
        return await chore.carry_out(run, (await self._assembler.setup(run)).fit, parts.clock)
