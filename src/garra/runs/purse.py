"""Pays for model calls: to whose account each goes, whether the next may be made, and who is told what is left.

Sub-agents pay from the run that began them, and its sender is theirs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from garra.config.sections import Config
from garra.config.sections.budget import Budget, Each, Limit
from garra.core import spending
from garra.core.errors import Failure, FailureKind, GarraError
from garra.core.groups import Place
from garra.core.keys import parse
from garra.core.messages import Assistant, Usage
from garra.core.spending import Account, Cap, Payer, Scope, Span, Warned
from garra.core.value import frozen
from garra.domains.spending.ledger import Ledger, Spent
from garra.runs.run import Run
from garra.sdk.model import ModelRequest
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

DEPTH: Final = 16
"""So far sub-agents of sub-agents are followed up."""

Parent = Callable[[str], tuple[str, str, Place | None] | None]
"""Of a sub-agent's session: the session and the run that began it, and who had asked there; None for any other."""

Tell = Callable[[Run, Warned], None]
"""Tells a person that a step of a budget is reached; once for each. It must not block, and not raise."""


@frozen
class Books:
    """`zone` is the name of the owner's time zone, for words."""

    ledger: Ledger
    config: Callable[[], Config]
    clock: Clock
    parent: Parent
    zone: Callable[[], str]


class Purse:
    """`books` None: nothing is counted, and nothing stops. `tellers` are told of each step."""

    def __init__(self, books: Books | None = None) -> None:
        self._books = books
        self.tellers: list[Tell] = []

    @property
    def ledger(self) -> Ledger | None:
        return self._books.ledger if self._books is not None else None

    def payer(self, run: Run) -> Payer | None:
        """To whose account the calls of a run go."""
        if self._books is None:
            return None
        turn = run.turn
        session, root, place = str(turn.session_key), str(run.run_id), turn.place
        for _ in range(DEPTH):
            found = self._books.parent(session)
            if found is None:
                break
            session, root, place = found[0], found[1], found[2] or place
        sender = f"{place.channel}:{place.account}:{place.sender}" if place is not None else ""
        return Payer(run.run_id, root, turn.session_key, turn.agent_id, sender, _job(session))

    def spent(self, request: ModelRequest, answer: Assistant, priced: bool) -> None:  # noqa: FBT001 - a port
        """A model was called. Never raises."""
        books = self._books
        if books is None:
            return
        model = request.model
        payer = request.payer or Payer("", "", "", "")
        failed = answer.stop in ("error", "aborted")
        tools = tuple(call.name for call in answer.calls)
        row = Spent(books.clock.now_ms(), payer, model.provider, model.id, answer.usage, priced, failed, tools)
        try:
            books.ledger.note(row)
        except GarraError as error:
            log.warning("a model call is not counted: %s", error.message)

    def counted(self, agent_id: str, model: tuple[str, str], usage: Usage) -> None:
        """Something beside the turns was asked of `model` (provider, id) for an agent: embeddings. Never raises."""
        if self._books is None:
            return
        payer = Payer("", "", "", agent_id)
        try:
            self._books.ledger.note(Spent(self._books.clock.now_ms(), payer, *model, usage, priced=False))
        except GarraError as error:
            log.warning("embeddings are not counted: %s", error.message)

    async def may(self, run: Run) -> Failure | None:
        """Why the next call of a run is not made; None where it may be."""
        books = self._books
        if books is None or not capped(books.config().budget):
            return None
        payer = self.payer(run)
        assert payer is not None
        place = run.turn.place
        verdict = await self._judged(books, payer, whole=place is None or (place.owner and not place.group))
        if isinstance(verdict, Failure):
            return verdict
        for warned in verdict.warnings:
            await self._tell(run, warned)
        return Failure(FailureKind.BUDGET, verdict.stop) if verdict.stop else None

    async def refusal(self, payer: Payer) -> Failure | None:
        """The same for a call beside all runs, as dreams make it; nobody is warned of it."""
        books = self._books
        if books is None or not capped(books.config().budget):
            return None
        verdict = await self._judged(books, payer, whole=True)
        if isinstance(verdict, Failure):
            return verdict
        return Failure(FailureKind.BUDGET, verdict.stop) if verdict.stop else None

    async def _judged(self, books: Books, payer: Payer, *, whole: bool) -> spending.Verdict | Failure:
        budget, ledger = books.config().budget, books.ledger
        caps = list(caps_of(budget, payer, ledger.day(books.clock.now_ms())))
        try:
            amounts = await ledger.used([cap.account for cap in caps]) if caps else ()
        except GarraError as error:
            return Failure(
                FailureKind.BUDGET, f"Stopped: what was spent cannot be read, and there is a budget: {error}"
            )
        pairs = zip(caps, amounts, strict=True)
        return spending.judge(pairs, ledger.told, steps=sorted(budget.warn_at), zone=books.zone(), whole=whole)

    async def _tell(self, run: Run, warned: Warned) -> None:
        assert self._books is not None
        try:
            fresh = await self._books.ledger.tell(warned.names)
        except GarraError as error:
            log.warning("that a budget was told of is not kept: %s", error.message)
            fresh = True
        if fresh:
            log.warning("%s", warned.text)
            for tell in self.tellers:
                tell(run, warned)


NO_PURSE: Final = Purse()


def capped(budget: Budget) -> bool:
    """Whether anything is capped at all."""
    single = (budget.run, budget.day, budget.month)
    each = (budget.session, budget.sender, budget.agent, budget.job)
    return any(_set(limit) for limit in (*single, *each)) or any(group.by_id for group in each)


def caps_of(budget: Budget, payer: Payer, day: str) -> Iterator[Cap]:
    """The caps that hold for a call on this day, the narrowest first."""
    rows: Sequence[tuple[Scope, str, Each]] = (
        ("session", payer.session, budget.session),
        ("sender", payer.sender, budget.sender),
        ("agent", payer.agent, budget.agent),
        ("job", payer.job, budget.job),
    )
    if _set(budget.run):
        yield _cap(Account("run", payer.root, "run", payer.root), budget.run, "budget.run")
    for scope, id_, each in rows:
        if not id_ and scope != "sender":
            continue
        own = each.by_id.get(id_)
        limit, key = (own, f'budget.{scope}.byId["{id_}"]') if own is not None else (each, f"budget.{scope}")
        if _set(limit):
            yield _cap(Account(scope, id_, each.per, _period(each.per, day)), limit, key)
    if _set(budget.day):
        yield _cap(Account("day", "", "day", day), budget.day, "budget.day")
    if _set(budget.month):
        yield _cap(Account("month", "", "month", day[:7]), budget.month, "budget.month")


def _set(limit: Limit) -> bool:
    return bool(limit.max_tokens or limit.max_cost_usd)


def _cap(account: Account, limit: Limit, key: str) -> Cap:
    return Cap(account, limit.max_tokens, limit.max_cost_usd, key)


def _period(span: Span, day: str) -> str:
    return {"day": day, "month": day[:7]}.get(span, "")


def _job(session: str) -> str:
    """The job whose session this is."""
    if ":cron:" not in session and not session.startswith("cron:"):
        return ""
    key = parse(session)
    return key.id if key.kind == "cron" else ""
