"""The engine port: who decides which message is next. The embedded one is the inbox itself, in this process.

"Give me the next admitted message of a free lane; I will say done, retry, or dead." A lane is one chat's thread: its
messages come one after the other, in the order they came in. What a run has adopted no longer holds its lane, so that
`/stop` and the next message reach the kernel while the run goes on.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable
from typing import Protocol

from garra.core.errors import Conflict, GarraError
from garra.core.value import frozen
from garra.domains.delivery.accounts import WEBCHAT
from garra.domains.delivery.inbox import Inbox, InboxRow
from garra.sdk.channel import Inbound
from garra.sdk.ports import Clock, Spawn, Task

Lane = tuple[str, str, str, str]


@frozen
class Job:
    """A message in hand; `lane` is busy until one of the engine's four words."""

    row: InboxRow
    event: Inbound
    lane: Lane


class Engine(Protocol):
    """Hands out messages. Whatever dies between `next` and one of the four words is handed out again."""

    async def start(self) -> list[InboxRow]:
        """Take up what an earlier process left. Gives the rows that a run had adopted, oldest first, to be resumed."""
        ...

    async def next(self) -> Job:
        """The oldest message of a lane that is free; waits for one. Its lane is busy from now on.

        Raises Unavailable when the store refuses; the message keeps its place, so call again later.
        """
        ...

    async def adopted(self, job: Job, run_id: str, session_key: str) -> InboxRow:
        """A run has it; the lane is free."""
        ...

    async def done(self, job: Job, why: str) -> InboxRow:
        """It needs nothing more; the lane is free."""
        ...

    async def retry(self, job: Job, delay_s: float) -> InboxRow:
        """Hand it out again after `delay_s`, before anything else of its lane."""
        ...

    async def dead(self, job: Job, reason: str) -> InboxRow:
        """It cannot be answered; the owner is told, the lane is free."""
        ...


def _webchat(row: InboxRow) -> bool:
    """What operators wrote never came by an engine; WebChat goes on with it."""
    return row.event.address is not None and row.event.address.channel == WEBCHAT


class Embedded:
    """As `Engine`, on the inbox of this process."""

    def __init__(self, inbox: Inbox, clock: Clock, spawn: Spawn) -> None:
        self._inbox = inbox
        self._clock = clock
        self._spawn = spawn
        self._waiting: dict[Lane, list[tuple[int, InboxRow]]] = {}
        self._known: set[int] = set()
        self._busy: set[Lane] = set()
        self._free: list[tuple[int, Lane]] = []
        self._wake = asyncio.Event()
        self._alarm: Task | None = None
        self._end = inbox.subscribe(self._heard)

    async def start(self) -> list[InboxRow]:
        rows = await self._inbox.pending()
        for row in rows:
            if row.state == "pending":
                self._heard(row)
        return [row for row in rows if row.state == "adopted" and not _webchat(row)]

    async def next(self) -> Job:
        while True:
            row = self._pick()
            if row is None:
                await self._wake.wait()
                self._wake.clear()
            elif (job := await self._claim(row)) is not None:
                return job

    async def adopted(self, job: Job, run_id: str, session_key: str) -> InboxRow:
        row = await self._inbox.adopt(job.row.id, run_id, session_key)
        self._release(job.lane)
        return row

    async def done(self, job: Job, why: str) -> InboxRow:
        row = await self._inbox.done(job.row.id, why)
        self._release(job.lane)
        return row

    async def retry(self, job: Job, delay_s: float) -> InboxRow:
        row = await self._inbox.release(job.row.id, delay_s)
        self._release(job.lane)
        return row

    async def dead(self, job: Job, reason: str) -> InboxRow:
        row = await self._inbox.bury(job.row.id, reason)
        self._release(job.lane)
        return row

    def close(self) -> None:
        """Listen no more."""
        self._end()
        if self._alarm is not None:
            self._alarm.cancel()

    async def _claim(self, row: InboxRow) -> Job | None:
        lane = _lane(row)
        try:
            claimed = await self._inbox.claim(row.id)
        except Conflict:  # dropped or buried while it waited
            self._release(lane)
            return None
        except GarraError:  # the disk refuses: it keeps its place
            self._busy.discard(lane)
            self._heard(row)
            raise
        event = row.event
        assert isinstance(event, Inbound)
        return Job(claimed, event, lane)

    def _heard(self, row: InboxRow) -> None:
        if row.state != "pending" or row.seq in self._known or not isinstance(row.event, Inbound):
            return
        lane = _lane(row)
        self._known.add(row.seq)
        queue = self._waiting.setdefault(lane, [])
        heapq.heappush(queue, (row.seq, row))
        if lane not in self._busy:
            self._offer(lane)

    def _offer(self, lane: Lane) -> None:
        heapq.heappush(self._free, (self._waiting[lane][0][0], lane))
        self._wake.set()

    def _pick(self) -> InboxRow | None:
        """The oldest row whose lane is free and whose time has come; its lane is busy from now on."""
        later: list[tuple[int, Lane]] = []
        picked = None
        while self._free and picked is None:
            seq, lane = heapq.heappop(self._free)
            picked = self._taken(seq, lane, later)
        for entry in later:
            heapq.heappush(self._free, entry)
        if picked is None and later:
            self._sleep(later)
        return picked

    def _taken(self, seq: int, lane: Lane, later: list[tuple[int, Lane]]) -> InboxRow | None:
        queue = self._waiting.get(lane)
        if lane in self._busy or not queue or queue[0][0] != seq:
            return None  # offered before, and taken since
        row = queue[0][1]
        if row.due_at > self._clock.now_ms():
            later.append((seq, lane))
            return None
        heapq.heappop(queue)
        self._known.discard(seq)
        if not queue:
            del self._waiting[lane]
        self._busy.add(lane)
        return row

    def _sleep(self, later: Iterable[tuple[int, Lane]]) -> None:
        due = min(self._waiting[lane][0][1].due_at for _, lane in later)
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._spawn(self._ring((due - self._clock.now_ms()) / 1000), "inbox alarm")

    async def _ring(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._wake.set()

    def _release(self, lane: Lane) -> None:
        self._busy.discard(lane)
        if lane in self._waiting:
            self._offer(lane)


def _lane(row: InboxRow) -> Lane:
    address = row.event.address
    assert address is not None
    return address.channel, address.account, address.chat, address.thread
