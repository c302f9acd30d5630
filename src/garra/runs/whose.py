"""Whose turn it is: who asked for it, with whose rights its commands run, for whom its tools are looked up."""

from __future__ import annotations

from garra.domains.tools.pipeline import Scope
from garra.runs.fences import Whom
from garra.runs.run import Run
from garra.sdk.model import Model


def requester(run: Run) -> str:
    """Who asked for a turn: the immutable id, by channel and account; empty for the owner at his own screen."""
    place = run.turn.place
    return f"{place.channel}:{place.account}:{place.sender}" if place else ""


def whom_of(run: Run) -> Whom:
    """Whose commands a run's are. A chat that nobody knows any more is a guest's."""
    place, origin = run.turn.place, run.turn.origin
    guest = place.guest if place is not None else origin == "channel"
    return Whom(run.agent_id, run.session_key, origin, guest)


def scope_of(run: Run, model: Model) -> Scope:
    """For whom tools are looked up in this run."""
    turn = run.turn
    return Scope(
        run.agent_id, run.session_key, turn.origin, model.provider, model.api, place=turn.place, model=model.id,
        inherited=turn.inherited,
    )  # fmt: skip
