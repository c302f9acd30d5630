"""Approvals over a real database, with a clock that stands and one route that a test opens and shuts."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from garra.core.approvals import Answer, Approval, Question, Source
from garra.core.errors import Unavailable
from garra.core.ids import AgentId, RunId, SessionKey
from garra.domains.exec.approvals import Approvals, Ports, Verdict
from garra.domains.exec.approvals_grants import Grants
from garra.domains.exec.approvals_rules import Rulebook
from garra.domains.exec.approvals_store import Docket
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.io.tasks import Tasks
from garra.testing.clock import ManualClock, settle


def question(**changes: Any) -> Question:
    plain = Question("exec", "touch x", "hash", SessionKey("agent:main:main"), AgentId("main"), RunId("r"), "call-1")
    return replace(plain, **changes)


@dataclass
class Way:
    """A route. `fault` is what keeps it from showing."""

    open: bool = True
    fault: str = ""
    shown: list[Approval] = field(default_factory=list)

    async def reaches(self, approval: Approval) -> bool:
        return self.open

    async def show(self, approval: Approval) -> None:
        if self.fault:
            raise Unavailable(self.fault)
        self.shown.append(approval)


@dataclass
class Desk:
    """One process's approvals."""

    approvals: Approvals
    clock: ManualClock
    spawn: Tasks
    way: Way
    db: Database

    async def asked(self, **changes: Any) -> tuple[Any, Approval]:
        """A question that waits: the task that waits for its answer, and the question."""
        known = {each.id for each in self.approvals.pending()}
        waiting = self.spawn(self.approvals.ask(question(**changes)), "asks")
        while not (new := [each for each in self.approvals.pending() if each.id not in known]):
            await settle()
        return waiting, new[0]

    async def decide(self, approval: Approval, choice: Any = "allow-once", by: str = "owner") -> bool:
        """Whether it was so before."""
        return (await self.approvals.decide(approval.id, Verdict(choice, by))).again

    async def until(self, true: Callable[[], bool]) -> None:
        while not true():
            await settle()


@asynccontextmanager
async def desk(
    folder: Path, clock: ManualClock | None = None, *, source: Source | None = None, review: Any = None
) -> AsyncIterator[Desk]:
    """`folder` keeps what a second desk finds again."""
    clock = clock or ManualClock()
    db = Database(folder / "state.db")
    async with Tasks() as spawn:
        ports = Ports(
            Docket(db),
            Grants(Shelf(db, "grants")),
            Rulebook(Shelf(db, "rules")),
            clock,
            spawn,
            lambda: f"0000{str(uuid.uuid4())[4:]}",
            lambda _: source or Source(),
            review,
        )
        approvals, way = Approvals(ports), Way()
        approvals.routes.append(way)
        await approvals.load()
        yield Desk(approvals, clock, spawn, way, db)
    await db.close()


async def answered(waiting: Any) -> Answer:
    found: Answer = await waiting
    return found
