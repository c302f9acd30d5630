"""Takes messages from the engine to the kernel: first what a restart finds, then each as its lane is free."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from garra.core.errors import GarraError
from garra.core.ids import SessionKey
from garra.core.value import frozen
from garra.domains.delivery.engine import Engine, Job
from garra.domains.delivery.inbox import InboxRow
from garra.sdk.ports import Task
from garra.turns.answers import KEPT
from garra.turns.ask import group_prompt
from garra.turns.kernel import AGAIN, STUCK, Kernel
from garra.turns.parts import Inbox, Ports
from garra.turns.recovery import Found, standing

log = logging.getLogger(__name__)

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
        job = self.jobs.pop(row_id, None)
        if job is None:
            return await self.inbox.adopt(row_id, run_id, session_key)
        return await self.engine.adopted(job, run_id, session_key)

    async def done(self, row_id: str, why: str) -> InboxRow:
        job = self.jobs.pop(row_id, None)
        return await self.inbox.done(row_id, why) if job is None else await self.engine.done(job, why)

    async def release(self, row_id: str, delay_s: float = 0.0) -> InboxRow:
        job = self.jobs.pop(row_id, None)
        return await self.inbox.release(row_id, delay_s) if job is None else await self.engine.retry(job, delay_s)


class Pump:
    """`start` once, with the kernel that was given `hand`; `stop` takes nothing more."""

    def __init__(self, kernel: Kernel, hand: Hand, ports: Ports, at_once: int = AT_ONCE) -> None:
        self._kernel, self._hand, self._ports = kernel, hand, ports
        self._room = asyncio.Semaphore(at_once)
        self._task: Task | None = None

    async def start(self) -> None:
        """Go on with what was under way, then take what comes."""
        await asyncio.to_thread(group_prompt)
        await self._recover(await self._hand.engine.start())
        self._task = self._ports.spawn(self._take(), "inbox pump")

    def stop(self) -> None:
        """Take no more; what is in hand goes on."""
        if self._task is not None:
            self._task.cancel()

    async def _take(self) -> None:
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
            if row_id in self._hand.jobs:  # its row is finished already, its lane is not free yet
                if outcome.why == STUCK:
                    await self._hand.release(row_id, REST_S)
                else:
                    await self._hand.done(row_id, outcome.why)
        finally:
            self._hand.jobs.pop(row_id, None)
            self._room.release()

    async def _recover(self, rows: Sequence[InboxRow]) -> None:
        """Turns that were under way, session by session, in their order."""
        runs: dict[tuple[str, str], list[InboxRow]] = {}
        for row in rows:
            runs.setdefault((row.session_key, row.run_id), []).append(row)
        for key in dict.fromkeys(key for key, _ in runs):
            ids = [run_id for session, run_id in runs if session == key]
            found = await self._standing(SessionKey(key), ids)
            self._resume({each.run_id: runs[key, each.run_id] for each in found}, found)

    async def _standing(self, key: SessionKey, ids: Sequence[str]) -> list[Found]:
        """How far they had come; a transcript that is gone knows of nothing."""
        try:
            transcript = await self._ports.sessions.transcript(key)
        except GarraError as error:
            log.warning("%s: %s; its turns begin again", key, error.message)
            return [Found(run_id, key) for run_id in ids]
        return standing(transcript.messages(), key, ids)

    def _resume(self, rows: dict[str, list[InboxRow]], found: Sequence[Found]) -> None:
        """One task for each turn; the messages that another turn had taken end with it."""
        for each in found:
            name = f"message {rows[each.run_id][0].id}"
            if not each.led_by:
                joined = [row for other in found if other.led_by == each.run_id for row in rows[other.run_id]]
                self._ports.spawn(self._again(rows[each.run_id], joined, each), name)
            elif each.led_by not in rows:
                self._ports.spawn(self._joined(rows[each.run_id]), name)

    async def _again(self, rows: Sequence[InboxRow], joined: Sequence[InboxRow], found: Found) -> None:
        outcome = await self._kernel.resume(rows, found)
        if outcome.why not in (KEPT, AGAIN, STUCK):
            await self._joined(joined)

    async def _joined(self, rows: Sequence[InboxRow]) -> None:
        for row in rows:
            await self._hand.done(row.id, "joined")
