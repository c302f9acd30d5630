"""Housekeeping that takes its place in a session's line, so that no turn and it ever meet."""

from __future__ import annotations

from typing import Final, Protocol

from garra.core.errors import Failure, FailureKind, UserError
from garra.core.events import Ending, RunEnded
from garra.core.ids import AgentId, RunId, SessionKey
from garra.runs.compaction import Gauge, Outcome
from garra.runs.run import Run, Turn
from garra.sdk.ports import Clock

COMPACT: Final = "compact"
KEEP: Final = "keep "
"""`keep 200` shows the model the last 200 messages and no others."""


class Runs(Protocol):
    """The table of runs."""

    async def submit(self, turn: Turn) -> Run: ...


def turn(kind: str, key: SessionKey, agent: AgentId, run_id: str, focus: str = "") -> Turn:
    """A chore as what is submitted; it is never merged with a message."""
    return Turn(RunId(run_id), key, agent, focus, queue="followup", route=f"chore {run_id}", chore=kind)


async def carry_out(run: Run, gauge: Gauge, clock: Clock) -> RunEnded:
    """Do it; the reply says what came of it. Never raises for what cannot be done."""
    kind = run.turn.chore
    try:
        if kind.startswith(KEEP):
            kept = await gauge.keep_last(int(kind.removeprefix(KEEP)))
            return RunEnded("ok", f"{kept}", None, None, run.started_at, clock.now_ms(), silent=True)
        outcome = await gauge.manual(run.turn.text)
    except UserError as error:
        failure = Failure(FailureKind.CANCELLED if run.cancel.is_set else FailureKind.REFUSED, error.message)
        ending: Ending = "aborted" if run.cancel.is_set else "error"
        return RunEnded(ending, error.message, None, failure, run.started_at, clock.now_ms(), silent=True)
    run.trace.context = outcome.before, outcome.after
    return RunEnded("ok", line(outcome), None, None, run.started_at, clock.now_ms(), silent=True)


def line(outcome: Outcome) -> str:
    """What a person is told."""
    return f"The conversation was summed up: about {outcome.before:,} tokens are {outcome.after:,} now."


async def done(runs: Runs, asked: Turn) -> RunEnded:
    """Submit a chore and wait for its end. Raises UserError with why it was not done."""
    run = await runs.submit(asked)
    ended = await run.wait()
    if ended.ending != "ok":
        raise UserError(ended.reply or (ended.failure.message if ended.failure else "It was stopped."))
    return ended
