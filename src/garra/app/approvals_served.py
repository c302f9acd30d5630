"""Approvals in the resident gateway: asked of its clients too, told to the watchers of runs, and kept over a stop."""

from __future__ import annotations

from collections.abc import Callable

from garra.core.events import PersonAnswered, PersonAsked
from garra.core.showing import shown
from garra.domains.exec.approvals import Approvals, Change
from garra.gateway import approvals as wire
from garra.gateway.host import Host
from garra.runs.runner import Runs


def serve(approvals: Approvals, host: Host, runs: Runs) -> Callable[[], None]:
    """Ask the gateway's clients too, and tell them, and the watchers of runs, of every question. The call ends it."""
    host.more[wire.WHERE] = approvals
    approvals.routes.insert(0, wire.Operators(host))
    ends = (wire.watch(host), approvals.subscribe(lambda change: tell(runs, change)))

    def end() -> None:
        for each in ends:
            each()

    return end


def tell(runs: Runs, change: Change) -> None:
    """A run waits, or goes on."""
    question = change.approval.question
    run = runs.find(question.run_id)
    if run is None or run.ended is not None:
        return
    about = (change.approval.id, question.call_id, question.kind, shown(question.subject))
    answer = change.answer
    runs.emit(run, PersonAsked(*about) if answer is None else PersonAnswered(*about, answer.allowed))


async def rest(approvals: Approvals, runs: Runs) -> None:
    """The gateway stops: runs that wait for a person are not waited for, their questions stay for the next start."""
    approvals.rest()
    for question in approvals.waiting:
        await runs.abort(question.session_key, question.run_id, "shutdown")
