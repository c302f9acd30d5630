"""Approvals in this house: kept in its database, asked of the person at the terminal of this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from garra.core.approvals import Approval, Question, Source, doing
from garra.core.characters import escaped
from garra.core.showing import measured, shown
from garra.core.value import frozen
from garra.domains.exec.approvals import Approvals, Ports, Verdict
from garra.domains.exec.approvals_grants import Grants
from garra.domains.exec.approvals_rules import SPACE, Rulebook
from garra.domains.exec.approvals_store import Docket
from garra.domains.exec.supervisor import Consent
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.runs.run import Run
from garra.sdk.ports import Clock, Spawn

GRANTS = "approval-grants"


class Found(Protocol):
    """As much of the table of runs as is asked of it."""

    def find(self, run_id: str) -> Run | None: ...


@frozen
class Asking:
    """What the house has for them; `runs` is asked once a question comes, and not before. `review` looks at a question
    before people do; `days` end what an `allow-always` lets pass, None: nothing does.
    """

    db: Database
    clock: Clock
    spawn: Spawn
    new_id: Callable[[], str]
    runs: Callable[[], Found]
    review: Callable[[Question], Awaitable[str]] | None = None
    days: Callable[[], int | None] = lambda: None


def made(asking: Asking, consent: Consent | None) -> Approvals:
    """The questions of one process. `consent` asks at the terminal, where somebody sits."""
    ports = Ports(
        Docket(asking.db),
        Grants(Shelf(asking.db, GRANTS)),
        Rulebook(Shelf(asking.db, SPACE)),
        asking.clock,
        asking.spawn,
        asking.new_id,
        lambda question: source_of(question, asking.runs()),
        asking.review,
        asking.days,
    )
    found = Approvals(ports)
    if consent is not None:
        found.routes.append(Terminal(found, consent))
    return found


def source_of(question: Question, runs: Found) -> Source:
    """Where the turn that asks was asked for."""
    run = runs.find(question.run_id)
    if run is None:
        return Source()
    turn, place = run.turn, run.turn.place
    unattended = turn.origin == "job"
    if place is None:
        return Source(unattended=unattended)
    return Source(
        place.channel, place.account, place.chat, place.thread, place.parent, place.guild, place.sender,
        direct=not place.group, unattended=unattended,
    )  # fmt: skip


@frozen
class Terminal:
    """The person at the terminal of this process."""

    approvals: Approvals
    consent: Consent

    async def reaches(self, approval: Approval) -> bool:
        return not approval.source.unattended

    async def show(self, approval: Approval) -> None:
        yes = await self.consent(approval.question.session_key, words(approval.question))
        await self.approvals.decide(approval.id, Verdict("allow-once" if yes else "deny", "the terminal"))


def words(question: Question) -> str:
    """A question in plain text, whole."""
    lines = [f"May the agent {question.agent_id} {doing(question.kind, question.tool)}?", shown(question.subject)]
    if question.cwd:
        lines.append(f"in {escaped(question.cwd)}")
    if size := measured(question.subject):
        lines.append(size)
    lines += [f"because {escaped(line)}" for line in question.why]
    return "\n".join((*lines, "Allow this once?"))
