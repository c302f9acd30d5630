"""Asks people: a question is stored, shown to whoever may answer it, waited for, and its answer acted upon once.

`core.approvals` decides; this keeps, waits and tells. A question that a crash or a stop left open stays: it is listed
and can be answered, and the answer is for the run that asks the very same thing again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from garra.core import approvals as core
from garra.core.approvals import (
    Accepted,
    Announce,
    Answer,
    Approval,
    Asked,
    Choice,
    Decided,
    Effect,
    Event,
    Give,
    Passed,
    Question,
    Refused,
    Registered,
    Resolve,
    Restarted,
    Source,
    Store,
    Unheard,
    Withdrawn,
)
from garra.core.errors import Conflict, GarraError, NotFound, UserError
from garra.core.value import frozen
from garra.domains.exec.approvals_grants import Grants
from garra.domains.exec.approvals_memory import Kept, remember
from garra.domains.exec.approvals_rules import Rulebook
from garra.domains.exec.approvals_store import Docket
from garra.sdk.ports import Clock, Spawn, Task

log = logging.getLogger(__name__)

SHORTEST = 4
"""Characters of an id that may stand for it."""

MOST_HERE, MOST = 16, 256
"""Questions that may wait at once: of one session, and of all."""
CROWDED = f"{MOST_HERE} questions of this conversation wait for an answer already; go on when they are answered"
NOBODY = (
    "nobody can be asked: no client that answers approvals is connected, and the turn comes from no chat where its "
    "owner would see the question"
)


class Route(Protocol):
    """One way to people who may answer."""

    async def reaches(self, approval: Approval) -> bool:
        """Whether anybody would be asked this way now."""
        ...

    async def show(self, approval: Approval) -> None:
        """Ask them. It is stored already. Raises GarraError when it could not be shown."""
        ...


@frozen
class Change:
    """What is told of a question: `answer` is None while it waits for one."""

    approval: Approval
    answer: Answer | None = None


@frozen
class Verdict:
    """A decision as somebody made it, who may. `days` limit what an `allow-always` lets pass."""

    choice: Choice
    by: str
    reason: str = ""
    days: int = 0


@frozen
class Decision:
    """What became of an answer. `again`: it was given before, in the same words."""

    approval: Approval
    again: bool = False


@frozen
class Ports:
    """`source` says where a question's turn was asked for. `review` looks at a question before people do: what it says
    against it ends it, nothing passes it on. `days` end what an `allow-always` lets pass where its giver names none.
    """

    docket: Docket
    grants: Grants
    rulebook: Rulebook
    clock: Clock
    spawn: Spawn
    new_id: Callable[[], str]
    source: Callable[[Question], Source] = lambda _: Source()
    review: Callable[[Question], Awaitable[str]] | None = None
    days: Callable[[], int | None] = lambda: None


class Approvals:
    """All questions of one process, as `sdk.ports.Asker`. `load` before anything is asked."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.grants, self.rulebook = ports.grants, ports.rulebook
        self.routes: list[Route] = []
        self._held: dict[str, Approval] = {}
        self._waits: dict[str, asyncio.Future[Answer]] = {}
        self._alarms: dict[str, Task] = {}
        self._listeners: list[Callable[[Change], None]] = []
        self._turn = asyncio.Lock()
        self._resting = False

    async def load(self) -> None:
        """Take up what an earlier process left."""
        ports = self._ports
        await self.grants.load()
        await self.rulebook.load()
        now = ports.clock.now_ms()
        for left in await ports.docket.live(now):
            self._held[left.id], _ = core.step(left, Restarted())
            self._alarm(left)

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Hear of each question when it may be answered, and when it has ended. It must not block, and not raise."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def rest(self) -> None:
        """The process is about to end: what is open from now on stays open for the next one."""
        self._resting = True

    def pending(self) -> list[Approval]:
        """What waits for an answer, the oldest first."""
        now = self._ports.clock.now_ms()
        waiting = (each for each in self._held.values() if each.phase == "pending" and each.expires_at > now)
        return sorted(waiting, key=lambda each: (each.asked_at, each.id))

    @property
    def waiting(self) -> Sequence[Question]:
        """The questions that runs of this process wait for."""
        return [self._held[name].question for name in self._waits if name in self._held]

    # ---- asking

    async def ask(self, question: Question, name: str = "") -> Answer:
        """As `sdk.ports.Asker`. `name` is the id it is to have, where its asker chose one that is free."""
        try:
            if (answer := await self._granted(question) or await self._reviewed(question)) is not None:
                return answer
            question = offered(question)
            if self._crowded(question):
                return Answer("deny", reason=CROWDED)
            if name and (like := core.alike(name, self._held)):
                raise Conflict(f"there is a question {like} already, and the id {name} could be taken for its")
            return await self._carried(question) or await self._asked(question, name or self._ports.new_id())
        except GarraError as error:
            return Answer("deny", reason=f"it could not be asked: {error.message}")

    async def _granted(self, question: Question) -> Answer | None:
        now = self._ports.clock.now_ms()
        grant = self.grants.covering(question, now)
        if grant is None:
            return None
        await self.grants.use(grant, now)
        return Answer("allow-once", by=f"grant {core.short(grant.id)}")

    async def _reviewed(self, question: Question) -> Answer | None:
        reason = await self._ports.review(question) if self._ports.review else ""
        return Answer("deny", by="reviewer", reason=reason) if reason else None

    async def _carried(self, question: Question) -> Answer | None:
        """The answer to the same question of before a restart: waited for while it is open, taken once if it is not."""
        for left in [each for each in self._held.values() if not each.waited and core.same(each.question, question)]:
            wait = self._waits[left.id] = asyncio.get_running_loop().create_future()
            await self._move(left.id, Asked(question, self._ports.clock.now_ms()))
            now = self._held.get(left.id)
            if wait.done() or (now is not None and now.waited):
                return await self._answer(left.id)
            del self._waits[left.id]
        return None

    def _crowded(self, question: Question) -> bool:
        """Whether so much is asked already that nobody could answer with care."""
        waiting = self.waiting
        return len(waiting) >= MOST or sum(each.session_key == question.session_key for each in waiting) >= MOST_HERE

    async def _asked(self, question: Question, name: str) -> Answer:
        """Register, then ask, then wait."""
        ports = self._ports
        if name in self._held or await ports.docket.get(name) is not None:
            raise Conflict(f"there is a question {name} already")
        approval = Approval(name, question, ports.clock.now_ms(), ports.source(question))
        routes = [route for route in self.routes if await route.reaches(approval)]
        self._held[approval.id] = approval
        self._waits[approval.id] = asyncio.get_running_loop().create_future()
        try:
            if not routes:
                await self._move(approval.id, Unheard(approval.asked_at, NOBODY))
            else:
                await ports.docket.put(approval)
                self._alarm(approval)
                await self._move(approval.id, Registered(ports.clock.now_ms()))
                ports.spawn(self._show(approval.id, routes), f"approval {approval.id} shown")
            return await self._answer(approval.id)
        except GarraError:
            self._held.pop(approval.id, None)
            self._waits.pop(approval.id, None)
            raise

    async def _answer(self, name: str) -> Answer:
        try:
            return await self._waits[name]
        except asyncio.CancelledError:
            if not self._resting:
                self._ports.spawn(self._withdraw(name), f"approval {name} taken back")
            raise
        finally:
            self._waits.pop(name, None)

    async def _show(self, name: str, routes: Sequence[Route]) -> None:
        """Show it by every route; where none of them could, it is as if nobody were there."""
        shown, reason = False, ""
        for route in routes:
            approval = self._held.get(name)
            if approval is None or not approval.open:
                return
            try:
                await route.show(approval)
                shown = True
            except GarraError as error:
                reason = error.message
                log.warning("approval %s could not be shown: %s", name, reason)
        if not shown:
            await self.unheard(name, f"it could not be shown: {reason}")

    async def unheard(self, name: str, reason: str) -> None:
        """Nobody sees this one after all: it ends with its fallback."""
        await self._move(name, Unheard(self._ports.clock.now_ms(), reason))

    async def _withdraw(self, name: str) -> None:
        await self._move(name, Withdrawn(self._ports.clock.now_ms()))

    def _alarm(self, approval: Approval) -> None:
        self._alarms[approval.id] = self._ports.spawn(self._expire(approval), f"life of approval {approval.id}")

    async def _expire(self, approval: Approval) -> None:
        clock = self._ports.clock
        while (left_ms := approval.expires_at - clock.now_ms()) > 0:
            await clock.sleep(left_ms / 1000)
        self._alarms.pop(approval.id, None)
        if approval.id in self._held:
            await self._move(approval.id, Passed(clock.now_ms()))

    # ---- answering

    async def find(self, name: str) -> Approval:
        """A question by its id, or by the beginning of it where only one begins so. Raises NotFound."""
        name = name.strip().lower()
        found = self._held.get(name) or await self._ports.docket.get(name)
        if found is not None:
            return found
        if len(name) >= SHORTEST:
            near = [each for each in self.pending() if each.id.startswith(name)]
            near = near or await self._ports.docket.beginning(name)
            if len(near) == 1:
                return near[0]
            if near:
                raise UserError(f"several questions begin with {name}; give more of the id")
        raise NotFound("unknown or expired approval id", details={"reason": "APPROVAL_NOT_FOUND"})

    async def decide(self, name: str, verdict: Verdict) -> Decision:
        """Answer one, as somebody who may. Raises NotFound, or Conflict with what it is instead of open."""
        found = await self.find(name)
        event = Decided(verdict.choice, verdict.by, self._ports.clock.now_ms(), verdict.reason)
        ended, effects = await self._move(found.id, event, verdict.days or self._ports.days() or 0)
        for effect in effects:
            if isinstance(effect, Refused):
                raise Conflict(effect.words, details={"reason": REASONS[effect.reason]})
        again = Accepted(again=True) in effects
        if verdict.choice == "allow-always" and not again:
            await self._alike(ended, verdict)
        return Decision(ended, again)

    async def _alike(self, ended: Approval, verdict: Verdict) -> None:
        """What else waits and is covered by an answer that was meant to last."""
        face = (ended.question.kind, ended.question.agent_id, ended.question.remembers)
        for each in self.pending():
            if (each.question.kind, each.question.agent_id, each.question.remembers) == face:
                await self._move(each.id, Decided("allow-once", verdict.by, self._ports.clock.now_ms()))

    async def ended(self, name: str) -> Approval:
        """Wait for the end of one. Raises NotFound."""
        found = await self.find(name)
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        end = self.subscribe(lambda change: _over(over, change, found.id))
        try:
            if found.id in self._held and self._held[found.id].open:
                await over
        finally:
            end()
        return await self.find(found.id)

    async def history(self, limit: int, before: tuple[int, str] | None = None) -> list[Approval]:
        """What was answered, newest first."""
        return await self._ports.docket.ended(limit, before)

    async def revoke(self, grant: str, by: str) -> bool:
        """A grant holds no more; False where it did not before. Raises NotFound."""
        return await self.grants.revoke(grant, self._ports.clock.now_ms(), by)

    async def sweep(self) -> None:
        """Forget what is old."""
        now = self._ports.clock.now_ms()
        await self._ports.docket.sweep(now)
        await self.grants.sweep(now)

    # ---- moving

    async def _move(self, name: str, event: Event, days: int = 0) -> tuple[Approval, tuple[Effect, ...]]:
        """Let something happen to one: what follows is on the disk before anybody hears of it."""
        ports = self._ports
        async with self._turn:
            before = self._held.get(name) or await ports.docket.get(name)
            if before is None:
                raise NotFound("unknown or expired approval id", details={"reason": "APPROVAL_NOT_FOUND"})
            after, effects = core.step(before, event)
            if isinstance(event, Decided) and Accepted() in effects:
                await remember(ports.grants, ports.rulebook, ports.new_id, Kept(after, event, days))
            if Store() in effects:
                await ports.docket.put(after)
            if after.open or not after.used:
                self._held[name] = after
            else:
                self._held.pop(name, None)
        for effect in effects:
            self._carry(after, effect, quiet=isinstance(event, Unheard) and before.phase == "registering")
        return after, effects

    def _carry(self, approval: Approval, effect: Effect, *, quiet: bool) -> None:
        match effect:
            case Announce():
                self._tell(Change(approval))
            case Resolve(answer):
                self._settle(approval.id, answer)
                if not quiet:
                    self._tell(Change(approval, answer))
            case Give(answer):
                self._settle(approval.id, answer)
            case Store() | Accepted() | Refused():
                pass

    def _settle(self, name: str, answer: Answer) -> None:
        if alarm := self._alarms.pop(name, None):
            alarm.cancel()
        wait = self._waits.get(name)
        if wait is not None and not wait.done():
            wait.set_result(answer)

    def _tell(self, change: Change) -> None:
        for listener in list(self._listeners):
            listener(change)


REASONS: Final = {
    "resolved": "APPROVAL_ALREADY_RESOLVED",
    "expired": "APPROVAL_EXPIRED",
    "withdrawn": "APPROVAL_ALREADY_RESOLVED",
    "not-offered": "APPROVAL_ALLOW_ALWAYS_UNAVAILABLE",
}


def _over(over: asyncio.Future[None], change: Change, name: str) -> None:
    if change.answer is not None and change.approval.id == name and not over.done():
        over.set_result(None)


def offered(question: Question) -> Question:
    """A question as it is asked: `always` is only offered where it was said what it means."""
    if question.remembers and (question.entries or question.covers):
        return question
    return replace(question, choices=tuple(each for each in question.choices if each != "allow-always"))
