"""Keeps when each step of a run began and ended: in memory while it runs, then among the newest in the database.

A run that has ended is written a moment later, together with those that ended meanwhile: no turn waits for it, and a
crash takes the traces of the last moment with it. Nothing that anybody said is in them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from garra.core.errors import GarraError
from garra.core.events import (
    Compacting,
    PersonAnswered,
    PersonAsked,
    RunEnded,
    RunEvent,
    RunPhase,
    ToolEnded,
    ToolStarted,
)
from garra.core.trace import MOST, Marks, Step
from garra.core.value import frozen
from garra.io.store.db import Connection, Database
from garra.runs.run import Run

log = logging.getLogger(__name__)

KEPT: Final = 2_000
"""Traces that are kept; each is some hundreds of bytes."""
LATE_S: Final = 1.0
"""How long after its run's end a trace is written."""
COLUMNS: Final = "run, session, agent, origin, started, ended, ending, led_by, body"
_PUT: Final = f"INSERT INTO traces ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)"


@frozen
class Kept:
    """A run's trace with what names it. `ended` 0 while it runs."""

    run: str
    session: str
    agent: str
    origin: str
    started: int
    ended: int
    ending: str
    led_by: str
    marks: Marks


class Recorder:
    """Listens to all runs. `find` gives the run of an id; `tellers` are told of each that has ended."""

    def __init__(self, db: Database, find: Callable[[str], Run | None]) -> None:
        self._db, self._find = db, find
        self._open: dict[str, Marks] = {}
        self._waiting: list[Kept] = []
        self._alarm: asyncio.TimerHandle | None = None
        self.tellers: list[Callable[[Kept], None]] = []

    def heard(self, event: RunEvent) -> None:
        """One event of a run. Words that arrive, by far the most of them, are told apart at once."""
        note = NOTES.get(type(event.body))
        if note is None:
            return
        marks = self._open.get(event.run_id)
        if marks is None:
            run = self._find(event.run_id)
            marks = self._open[event.run_id] = Marks(run.started_at if run is not None else event.ts)
        note(marks, event.ts, event.body)
        if marks.ending:
            self._ended(event, marks)

    def _ended(self, event: RunEvent, marks: Marks) -> None:
        del self._open[event.run_id]
        run = self._find(event.run_id)
        if run is None:
            return
        kept = _kept(run, marks)
        self._waiting.append(kept)
        log.debug(
            "turn ended: %s after %d ms, %d requests to models, %d calls of tools",
            marks.ending, marks.ended - marks.accepted, len(marks.requests), len(marks.tools),
        )  # fmt: skip
        for tell in self.tellers:
            tell(kept)
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(LATE_S, self.flush)

    def flush(self) -> None:
        """Write what waits. Never raises for the store's faults."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        rows, self._waiting = self._waiting, []
        if not rows:
            return
        try:
            self._db.post(lambda connection: put(connection, rows), _settled)
        except GarraError as error:
            _settled(error)

    def now(self) -> list[Kept]:
        """What the database does not have yet: runs under way, and those that have just ended; the newest last."""
        found = [*self._waiting]
        for run_id, marks in self._open.items():
            if (run := self._find(run_id)) is not None:
                found.append(_kept(run, marks))
        return found


def _kept(run: Run, marks: Marks) -> Kept:
    turn, requests = run.turn, run.trace.requests
    marks.requests = requests[:MOST]
    marks.left_out += max(0, len(requests) - MOST)
    return Kept(
        run.run_id, run.session_key, run.agent_id, turn.origin, marks.accepted, marks.ended, marks.ending,
        run.led_by or "", marks,
    )  # fmt: skip


def put(connection: Connection, rows: list[Kept]) -> None:
    """Write traces; the oldest go."""
    connection.executemany(_PUT, [_values(row) for row in rows])
    connection.execute("DELETE FROM traces WHERE seq <= (SELECT max(seq) FROM traces) - ?", (KEPT,))


def _values(row: Kept) -> tuple[object, ...]:
    return (
        row.run, row.session, row.agent, row.origin, row.started, row.ended, row.ending, row.led_by,
        msgspec.json.encode(row.marks),
    )  # fmt: skip


def _settled(error: BaseException | None) -> None:
    if error is not None:
        log.warning("how a turn went could not be kept: %s", error)


def _phase(marks: Marks, ts: int, body: RunPhase) -> None:
    if len(marks.phases) < MOST:
        marks.phases.append((body.phase, ts))


def _add(marks: Marks, steps: list[Step], step: Step) -> None:
    if len(steps) < MOST:
        steps.append(step)
    else:
        marks.left_out += 1


def _close(steps: list[Step], call: str, ts: int, result: str) -> Step | None:
    """The newest open step of `call` has ended."""
    for step in reversed(steps):
        if step.call == call and not step.ended:
            step.ended, step.result = ts, result
            return step
    return None


def _tool(marks: Marks, ts: int, body: ToolStarted) -> None:
    _add(marks, marks.tools, Step(body.call.name, ts, call=body.call.id))


def _tool_over(marks: Marks, ts: int, body: ToolEnded) -> None:
    _close(marks.tools, body.call.id, ts, "error" if body.result.is_error else "ok")


def _asked(marks: Marks, ts: int, body: PersonAsked) -> None:
    _add(marks, marks.asked, Step(body.approval, ts, call=body.call_id, kind=body.kind))


def _answered(marks: Marks, ts: int, body: PersonAnswered) -> None:
    _close(marks.asked, body.call_id, ts, "allowed" if body.allowed else "refused")


def _compaction(marks: Marks, ts: int, body: Compacting) -> None:
    if body.phase == "start":
        _add(marks, marks.compactions, Step("compaction", ts, kind=body.why))
    elif (step := _close(marks.compactions, "", ts, body.step)) is not None:
        step.before, step.after = body.before, body.after


def _over(marks: Marks, ts: int, body: RunEnded) -> None:
    marks.ended, marks.ending = ts, "silent" if body.silent else body.ending
    marks.failure = body.failure.kind.value if body.failure is not None else ""


NOTES: Final[dict[type, Callable[[Marks, int, Any], None]]] = {
    RunPhase: _phase,
    ToolStarted: _tool,
    ToolEnded: _tool_over,
    PersonAsked: _asked,
    PersonAnswered: _answered,
    Compacting: _compaction,
    RunEnded: _over,
}
