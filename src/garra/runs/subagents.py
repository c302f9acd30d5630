"""Sub-agents: every child of every session, started, watched to its end, and told to its parent exactly once.

`core.lineage` decides, this carries out. A child is on the disk before it begins, its report before anybody hears that
it has ended; a restart goes on with what it finds. Its parent is told by a turn of its own session: in a chat through
the inbox (`post`), inside another sub-agent at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, assert_never

from garra.core import lineage, reports, taint
from garra.core.errors import GarraError, NotFound
from garra.core.events import MessageEnded, RunEnded, RunEvent
from garra.core.ids import RunId, SessionKey
from garra.core.keys import parse
from garra.core.lineage import Child, Effect, Left
from garra.core.messages import Assistant
from garra.core.taint import Mark
from garra.core.value import frozen
from garra.domains.tools.pipeline import Scope
from garra.runs import offspring
from garra.runs.attic import Attic, Ports
from garra.runs.run import Run, Turn
from garra.runs.runner import Runs

log = logging.getLogger(__name__)

LONGEST_S: Final = 60.0
"""The longest wait between two tries to write to a disk that refuses."""

Post = Callable[[Child, Turn], Awaitable[None]]
"""Gives a report to a parent that is no sub-agent. It is on the disk there when this returns, once, however often it is
given. Raises Unavailable to be asked again.
"""

Share = Callable[[Child, reports.Made], Awaitable[tuple[Left, ...]]]
"""Makes files of a child known to its parent's tools; those that it has by `Child.files` already are not made again."""


@frozen
class Bound:
    """What is there when it stands. `had` are the names of the tools that a run may really call; `text` gives a prompt
    by name; `halt` ends the programs of a session; `model` gives a reference in full, or raises NotFound; `folder` is
    the workspace of an agent.
    """

    runs: Runs
    had: Callable[[Run], tuple[str, ...]]
    text: offspring.Text
    halt: Callable[[SessionKey], Awaitable[object]]
    model: Callable[[str, str], str]
    folder: Callable[[str], str]


__all__ = ["Bound", "Ports", "Post", "Share", "Subagents"]


class Subagents:
    """`load` and `bind` once; then, in the process that owns what earlier ones left, `post` and `resume`."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.post: Post | None = None
        self.share: Share | None = None
        self._bound: Bound | None = None
        self._children: dict[str, Child] = {}
        self._telling: dict[RunId, str] = {}
        self._ending: Counter[str] = Counter()
        self._attic = Attic(ports, self)
        self._news = asyncio.Event()

    async def load(self) -> None:
        """Know what earlier processes started."""
        for child in await self.ports.records.load():
            self._children[child.key] = child

    def bind(self, bound: Bound) -> None:
        self._bound = bound
        bound.runs.subscribe(self._heard)

    @property
    def bound(self) -> Bound:
        assert self._bound is not None
        return self._bound

    # ---- what is known

    def get(self, key: str) -> Child | None:
        """The sub-agent whose session this is."""
        return self._children.get(key)

    def of(self, parent: str) -> list[Child]:
        """Those that a session started, newest first."""
        found = [child for child in self._children.values() if child.home.key == parent]
        return sorted(found, key=lambda child: child.created_at, reverse=True)

    def every(self) -> list[Child]:
        return list(self._children.values())

    def idle(self, child: Child) -> bool:
        """Whether nothing runs in its session."""
        return self.bound.runs.active(child.key) is None

    def waiting(self, key: str) -> list[Child]:
        """Those of a session that it has yet to be told of."""
        return [child for child in self.of(key) if child.open]

    def by_ticket(self, ticket: str) -> Child | None:
        """The ended child whose report has this name."""
        return next((c for c in self._children.values() if c.ticket == ticket and not c.active), None)

    def scope(self, scope: Scope) -> Scope:
        """`scope` with whose sub-agent it is. A sub-agent's session that nobody remembers has nothing."""
        child = self._children.get(scope.session_key)
        if child is not None:
            return replace(scope, depth=child.depth, inherited=child.tools, place=scope.place or child.home.place)
        if parse(scope.session_key).kind == "subagent":
            return replace(scope, depth=max(1, scope.depth), inherited=())
        return scope

    def report(self, child: Child) -> Turn:
        return offspring.report(child, self.bound.text)

    # ---- from start to end

    def claim(self, child: Child) -> None:
        """Take a place for it before anything is awaited, so that limits hold; `begin` or `forget` follows."""
        self._children[child.key] = child

    def forget(self, child: Child) -> None:
        self._children.pop(child.key, None)

    async def begin(self, child: Child) -> None:
        """Its session is there: put it on the disk, then let it run as soon as there is room. Raises Unavailable."""
        await self.ports.records.put(child, self.ports.clock.now_ms())
        self._children[child.key] = child
        self._start_queued()

    def apply(self, key: str, event: lineage.Event) -> Child | None:
        """Something happened to the child of session `key`. What follows is done behind, the record first."""
        child = self._children.get(key)
        if child is None:
            return None
        moved, effects = lineage.step(child, event)
        if moved is not child or effects:
            self._children[key] = moved
            self._news.set()
            self.ports.spawn(self._carry(moved, effects), f"sub-agent {moved.run_id}")
        return moved

    async def stop(self, key: str, *, quiet: bool) -> list[Child]:
        """Stop one, its run, its programs and all it has started; those that were stopped, itself first."""
        child = self._children.get(key)
        if child is None or not child.active:
            return []
        stopped = self.apply(key, lineage.Stopped(self._now(), quiet))
        await self.bound.runs.abort(key, reason="stop")
        await self.bound.halt(SessionKey(key))
        return [stopped or child, *await self.stop_under(key)]

    async def stop_under(self, parent: str, run_id: str | None = None) -> list[Child]:
        """Stop all children of a session (of one run of it), which tell nobody; those that were stopped."""
        hit = [c for c in self.of(parent) if c.active and run_id in (None, c.home.run_id)]
        return [found for child in hit for found in await self.stop(child.key, quiet=True)]

    async def over(self, key: str) -> list[Run]:
        """Wait until all that works for a session has ended and was told; the runs in which it was, in their order."""
        told: dict[str, Run] = {}
        while True:
            self._news.clear()
            for child in reversed(self.of(key)):
                run = self.bound.runs.find(child.report_id)
                if run is not None:
                    await run.wait()
                    told[child.key] = run
            if not self.waiting(key):
                return [run for run in told.values() if run.led_by is None]
            await self._news.wait()

    async def resume(self) -> None:
        """Go on with what an earlier process left: what ran runs on, what ended is told. What a command had started in
        its own process ended with it.
        """
        now = self._now()
        for child in sorted(self.every(), key=lambda each: each.created_at):
            if child.local:
                self.apply(child.key, lineage.Stopped(now, quiet=True))
            elif child.open:
                self.apply(child.key, lineage.Restarted(now))
        self._start_queued()
        self._attic.sweep_soon()

    def _now(self) -> int:
        return self.ports.clock.now_ms()

    def _start_queued(self) -> None:
        most = self.ports.config().agents.defaults.subagents.max_concurrent
        ours = [child for child in self._children.values() if child.local == (self.post is None)]
        for child in lineage.starters(ours, most):
            began = self.apply(child.key, lineage.Began(self._now()))
            if began is not None:
                self.ports.spawn(self._run(began.key, offspring.task(began, self.bound.text)), f"run {began.key}")

    async def _run(self, key: str, turn: Turn) -> None:
        try:
            await self.bound.runs.submit(turn)
        except GarraError as error:
            if error.retryable:  # the process is stopping: the next one goes on with it
                log.info("%s waits for the next start: %s", key, error.message)
                return
            self.apply(key, lineage.Ended(self._now(), "error", fault=error.message))

    # ---- what its runs say

    def _heard(self, event: RunEvent) -> None:
        body = event.body
        if isinstance(body, RunEnded):
            self._run_ended(event, body)
        elif event.session_key in self._children and isinstance(body, MessageEnded):
            self._check(event, body)

    def _check(self, event: RunEvent, body: MessageEnded) -> None:
        """One that has used up what a child may is stopped."""
        child, run = self._children[event.session_key], self.bound.runs.find(event.run_id)
        if run is None or not isinstance(body.message, Assistant) or not child.active:
            return
        if offspring.over(child, run.usage, self.ports.config()):
            run.cancel.set(offspring.SPENT)

    def _run_ended(self, event: RunEvent, ended: RunEnded) -> None:
        run = self.bound.runs.find(event.run_id)
        if run is None or offspring.passing(run, ended):
            return
        if event.session_key in self._children and run.led_by is None:
            self._child_ended(run, ended)
        if (told := self._telling.pop(event.run_id, None)) is not None:
            self.told(told)
        if ended.ending == "aborted":
            self.ports.spawn(self.stop_under(event.session_key, event.run_id), "sub-agents of a stopped run")

    def _child_ended(self, run: Run, ended: RunEnded) -> None:
        child, used = self._children[run.session_key], run.usage
        outcome, fault = offspring.outcome(child, run, ended, self.ports.config())
        happened = lineage.Ended(
            self._now(),
            outcome,
            offspring.last_words(run, ended),
            fault,
            tokens_in=used.input + used.cache_read + used.cache_write,
            tokens_out=used.output,
            cost=used.cost,
        )
        self._ending[child.key] += 1
        self.ports.spawn(self._ended(child.key, happened), f"sub-agent {child.run_id}")

    async def _ended(self, key: str, ended: lineage.Ended) -> None:
        """What it read from outside and what it made go on to whoever reads its report; then it is settled."""
        try:
            marks = await self.marks(key)
            files = await self._left(key, ended.reply)
        finally:
            self._ending[key] -= 1
        self.apply(key, replace(ended, marks=marks, files=files, open=len(self.waiting(key))))

    async def _left(self, key: str, reply: str) -> tuple[Left, ...]:
        """The files that its parent gets; where they cannot be had, its report is told without them."""
        child = self._children.get(key)
        if self.share is None or child is None:
            return ()
        try:
            found = reports.made((await self.ports.sessions.transcript(key)).messages(), reply)
            return await self.share(child, found) if found != reports.Made() else ()
        except GarraError as error:
            log.warning("the files of sub-agent %s: %s", child.run_id, error.message)
            return ()

    async def marks(self, key: str) -> tuple[Mark, ...]:
        """Where the text from outside came from that a session has read."""
        try:
            messages = (await self.ports.sessions.transcript(key)).messages()
        except GarraError:
            return (taint.UNREADABLE,)
        return tuple(dict.fromkeys(mark for message in messages for mark in taint.of(message.meta)))

    # ---- what follows

    async def _carry(self, child: Child, effects: Sequence[Effect]) -> None:
        await self._surely(lambda: self._store(child.key), child)
        for effect in effects:
            match effect:
                case "resume":
                    await self._again(child)
                case "tell":
                    await self._tell(child)
                case "cascade":
                    await self.stop_under(child.key)
                case "clean":
                    await self._attic.delete(child)
                case _:
                    assert_never(effect)
        if not child.active:
            self._start_queued()
            self._attic.sweep_soon()
        if not child.open and child.home.nested:
            self._settle(child.home.key)

    async def _store(self, key: str) -> None:
        """As it stands now: what a disk refused for a while must not come behind what happened since."""
        if (child := self._children.get(key)) is not None:
            await self.ports.records.put(child, self._now())

    async def _surely(self, step: Callable[[], Awaitable[object]], child: Child) -> bool:
        """Do it, again and again while the disk refuses; False where it cannot be done at all."""
        wait_s = 1.0
        while True:
            try:
                await step()
            except GarraError as error:
                log.warning("sub-agent %s: %s", child.run_id, error.message)
                if not error.retryable:
                    return False
            else:
                return True
            await self.ports.clock.sleep(wait_s)
            wait_s = min(LONGEST_S, wait_s * 2)

    async def _again(self, child: Child) -> None:
        """After a restart: its run goes on, unless its transcript says that it has ended."""
        if child.state == "waiting":
            self._settle(child.key)
            return
        stand = await self._standing(child.key, child.run_id)
        if stand.over:
            self._ending[child.key] += 1
            await self._ended(child.key, lineage.Ended(self._now(), "ok", stand.text))
        else:
            await self._run(child.key, offspring.task(child, self.bound.text))

    async def _standing(self, key: str, run_id: str) -> reports.Stand:
        try:
            messages = (await self.ports.sessions.transcript(key)).messages()
        except NotFound:
            return reports.Stand()
        return reports.standing(messages, run_id)

    async def _tell(self, child: Child) -> None:
        if child.home.nested:
            await self._tell_nested(child)
            return
        post = self.post or self._post_here
        if not await self._surely(lambda: post(child, self.report(child)), child):
            log.error("the report of sub-agent %s reached nobody; it stands in session %s", child.run_id, child.key)
        self.told(child.key)

    async def _tell_nested(self, child: Child) -> None:
        parent, turn = self._children.get(child.home.key), self.report(child)
        if parent is None or not parent.active:  # it has ended without it
            self.told(child.key)
            return
        stand = await self._standing(parent.key, turn.run_id)
        if stand.over:
            self.told(child.key)
            self._ending[parent.key] += 1
            await self._ended(parent.key, lineage.Ended(self._now(), "ok", stand.text))
            return
        self._telling[turn.run_id] = child.key
        await self._run(parent.key, turn)

    async def _post_here(self, child: Child, turn: Turn) -> None:
        """Where no gateway runs: the turn follows at once, in this process."""
        await self.bound.runs.submit(turn)

    def told(self, key: str) -> None:
        """Its parent has it."""
        self.apply(key, lineage.Told(self._now()))

    def _settle(self, key: str) -> None:
        """One that waits for its own has none left: it has ended."""
        if self._ending[key] == 0 and self.bound.runs.active(key) is None:
            self.apply(key, lineage.Settled(self._now(), len(self.waiting(key))))
