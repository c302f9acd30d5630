"""Takes messages from the engine to the kernel: first what a restart finds, then each as its lane is free."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from garra.core.errors import Conflict, GarraError
from garra.core.ids import SessionKey
from garra.core.value import frozen
from garra.domains.delivery.engine import Engine, Job
from garra.domains.delivery.inbox import InboxRow
from garra.sdk.ports import Task
from garra.turns.answers import KEPT
from garra.turns.ask import group_prompt
from garra.turns.outcome import AGAIN, STUCK
from garra.turns.parts import Inbox, Ports
from garra.turns.recovery import Found, standing
from garra.turns.reports import Turns

log = logging.getLogger(__name__)

BEGUN_S: Final = 10.0
"""How long what is new waits for what was under way to be begun again; then it overtakes."""

AT_ONCE: Final = 2_000
"""Messages in the kernel's hands at one time; the rest stay on the disk and in line."""

REST_S: Final = 5.0
"""How long to wait for a store that refuses."""


@frozen
class Hand:
    """The inbox as the kernel has it: what it says of a message in its hand frees that message's lane."""

    inbox: Inbox
    engine: Engine
    jobs: dict[str, Job]

    async def adopt(self, row_id: str, run_id: str, session_key: str) -> InboxRow:
        job = self.jobs.get(row_id)
        if job is None:
            return await self.inbox.adopt(row_id, run_id, session_key)
        return self._freed(await self.engine.adopted(job, run_id, session_key))

    async def done(self, row_id: str, why: str) -> InboxRow:
        job = self.jobs.get(row_id)
        return await self.inbox.done(row_id, why) if job is None else self._freed(await self.engine.done(job, why))

    async def release(self, row_id: str, delay_s: float = 0.0) -> InboxRow:
        job = self.jobs.get(row_id)
        if job is None:
            return await self.inbox.release(row_id, delay_s)
        return self._freed(await self.engine.retry(job, delay_s))

    def _freed(self, row: InboxRow) -> InboxRow:
        """Its lane is free; where the store refused, it is not."""
        self.jobs.pop(row.id, None)
        return row


class Pump:
    """`start` once, with the kernel that was given `hand`; `stop` takes nothing more."""

    def __init__(self, kernel: Turns, hand: Hand, ports: Ports, at_once: int = AT_ONCE) -> None:
        self._kernel, self._hand, self._ports = kernel, hand, ports
        self._room = asyncio.Semaphore(at_once)
        self._task: Task | None = None

    async def start(self) -> None:
        """Go on with what was under way, then take what comes."""
        await asyncio.to_thread(group_prompt)
        begun = await self._recover(await self._hand.engine.start())
        self._task = self._ports.spawn(self._take(begun), "inbox pump")

    def stop(self) -> None:
        """Take no more; what is in hand goes on."""
        if self._task is not None:
            self._task.cancel()

    async def _take(self, begun: Sequence[asyncio.Event]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEGUN_S):
                for each in begun:
                    await each.wait()
        while True:
            await self._room.acquire()
            try:
                job = await self._hand.engine.next()
            except GarraError as error:
                log.warning("the inbox cannot be read: %s", error.message)
                self._room.release()
                await self._ports.clock.sleep(REST_S)
                continue
            self._hand.jobs[job.row.id] = job
            self._ports.spawn(self._carry(job), f"message {job.row.id}")

    async def _carry(self, job: Job) -> None:
        row_id = job.row.id
        try:
            outcome = await self._kernel.turn(job.row)
            if outcome.why == STUCK:
                await self._surely(lambda: self._hand.release(row_id, REST_S))
            elif row_id in self._hand.jobs:  # its row is finished already, its lane is not free yet
                await self._surely(lambda: self._hand.done(row_id, outcome.why))
        finally:
            self._hand.jobs.pop(row_id, None)
            self._room.release()

    async def _surely(self, write: Callable[[], Awaitable[object]]) -> None:
        """Write it, when the store refuses, again until it does not: a message in hand is never forgotten."""
        while True:
            try:
                await write()
            except Conflict:  # it came to its end meanwhile
                return
            except GarraError as error:
                if not error.retryable:
                    raise
                log.warning("the inbox cannot be written: %s", error.message)
            else:
                return
            await self._ports.clock.sleep(REST_S)

    async def _recover(self, rows: Sequence[InboxRow]) -> list[asyncio.Event]:
        """Turns that were under way, session by session. Each event is set when those of one have begun again."""
        runs: dict[str, dict[str, list[InboxRow]]] = {}
        for row in rows:
            runs.setdefault(row.session_key, {}).setdefault(row.run_id, []).append(row)
        begun: list[asyncio.Event] = []
        for key, of_session in runs.items():
            begun.append(asyncio.Event())
            self._ports.spawn(self._resume(SessionKey(key), of_session, begun[-1]), f"resuming {key}")
        return begun

    async def _standing(self, key: SessionKey, ids: Sequence[str]) -> list[Found]:
        """How far they had come; a transcript that is gone knows of nothing."""
        while True:
            try:
                transcript = await self._ports.sessions.transcript(key)
            except GarraError as error:
                log.warning("%s: %s", key, error.message)
                if not error.retryable:
                    return [Found(run_id, key) for run_id in ids]
            else:
                return standing(transcript.messages(), key, ids)
            await self._ports.clock.sleep(REST_S)

    async def _resume(self, key: SessionKey, rows: Mapping[str, list[InboxRow]], all_begun: asyncio.Event) -> None:
        """One task for each turn, begun in this order; the messages that another turn had taken end with it."""
        found = await self._standing(key, list(rows))
        rows = {each.run_id: await self._asked(each, rows[each.run_id]) for each in found}
        for each in found:
            name = f"run {each.run_id}"
            if not rows[each.run_id]:
                continue
            if not each.led_by:
                begun = asyncio.Event()
                joined = [row for other in found if other.led_by == each.run_id for row in rows[other.run_id]]
                self._ports.spawn(self._again(rows[each.run_id], joined, each, begun), name)
                await begun.wait()
            elif each.led_by not in rows:
                self._ports.spawn(self._joined(rows[each.run_id]), name)
        all_begun.set()

    async def _asked(self, found: Found, rows: Sequence[InboxRow]) -> list[InboxRow]:
        """Those of a turn's messages that it had taken; one that came too late for it is taken up by itself."""
        for row_id in [row.id for row in rows if not found.holds(row.event.id)]:
            await self._surely(functools.partial(self._hand.release, row_id))
        return [row for row in rows if found.holds(row.event.id)]

    async def _again(
        self, rows: Sequence[InboxRow], joined: Sequence[InboxRow], found: Found, begun: asyncio.Event
    ) -> None:
        """Its rows stay adopted until it has come to its end: taken up singly they would be other turns."""
        tries = 0
        try:
            while (outcome := await self._kernel.resume(rows, found, tries, begun.set)).why in (AGAIN, STUCK):
                tries += 1
                await self._ports.clock.sleep(min(REST_S, 2.0**tries))
        finally:
            begun.set()
        if outcome.why != KEPT:
            await self._joined(joined)

    async def _joined(self, rows: Sequence[InboxRow]) -> None:
        for row_id in [row.id for row in rows]:
            await self._surely(functools.partial(self._hand.done, row_id, "joined"))
