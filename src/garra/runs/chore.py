"""Housekeeping that takes its place in a session's line, so that no turn and it ever meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from garra.core.errors import Failure, FailureKind, UserError
from garra.core.events import Ending, RunEnded
from garra.core.ids import AgentId, RunId, SessionKey
from garra.runs.compaction import Gauge, Outcome
from garra.runs.drive import Fit
from garra.runs.run import Run, Turn
from garra.sdk.ports import Clock

if TYPE_CHECKING:
    from garra.runs.engine import Assembly

COMPACT: Final = "compact"
SAVE: Final = "save"
"""The agent saves what should last, since the conversation ends."""
KEEP: Final = "keep "
"""`keep 200` shows the model the last 200 messages and no others."""


class Runs(Protocol):
    """The table of runs."""

    async def submit(self, turn: Turn) -> Run: ...


def turn(kind: str, key: SessionKey, agent: AgentId, run_id: str, *, focus: str = "") -> Turn:
    """A chore as what is submitted; it is never merged with a message."""
    return Turn(RunId(run_id), key, agent, focus, queue="followup", route=f"chore {run_id}", chore=kind)


async def carry_out(run: Run, fit: Fit | None, clock: Clock) -> RunEnded:
    """Do it; the reply says what came of it. Never raises for what cannot be done."""
    try:
        said = await _done(run, fit)
    except UserError as error:
        failure = Failure(FailureKind.CANCELLED if run.cancel.is_set else FailureKind.REFUSED, error.message)
        ending: Ending = "aborted" if run.cancel.is_set else "error"
        return RunEnded(ending, error.message, None, failure, run.started_at, clock.now_ms(), silent=True)
    return RunEnded("ok", said, None, None, run.started_at, clock.now_ms(), silent=True)


async def _done(run: Run, fit: Fit | None) -> str:
    """What came of it. A context engine is asked first, and nobody else where the history is its own matter."""
    kind = run.turn.chore
    if fit is not None and not isinstance(fit, Gauge):
        engine = cast("Assembly", fit)  # not asked for by its class: it is only loaded where one is chosen
        if kind == COMPACT and await engine.compact():
            return "The context engine made the conversation smaller."
        if engine.owns_compaction:
            raise UserError("The context engine keeps this conversation, and did not make it smaller.")
        fit = engine.inner
    if not isinstance(fit, Gauge):
        raise UserError("Nothing makes conversations smaller here.")
    if kind.startswith(KEEP):
        return f"{await fit.keep_last(int(kind.removeprefix(KEEP)))}"
    outcome = await fit.manual(run.turn.text)
    run.trace.context = outcome.before, outcome.after
    return line(outcome)


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
