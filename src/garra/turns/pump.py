"""Takes rows from the inbox to the kernel: first what a restart finds, then each as it comes."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from garra.core.errors import GarraError
from garra.core.ids import SessionKey
from garra.domains.delivery.inbox import InboxRow
from garra.turns.kernel import Kernel
from garra.turns.parts import Ports
from garra.turns.recovery import Found, standing

log = logging.getLogger(__name__)

AT_ONCE: Final = 2_000
"""Rows in the kernel's hands at one time; the rest stay on the disk and in line."""


class Pump:
    """`start` once; it lives as long as its tasks' owner."""

    def __init__(self, kernel: Kernel, ports: Ports, at_once: int = AT_ONCE) -> None:
        self._kernel, self._ports = kernel, ports
        self._at_once = at_once
        self._line: deque[InboxRow] = deque()
        self._busy = 0
        self._end: Callable[[], None] | None = None

    async def start(self) -> None:
        """Go on with what was under way, then take what comes."""
        self._end = self._ports.inbox.subscribe(self._arrived)
        rows = await self._ports.inbox.pending()
        known = {row.id for row in self._line}
        await self._recover([row for row in rows if row.state == "adopted"])
        waiting = [row for row in rows if row.state != "adopted" and row.id not in known]
        self._line.extendleft(reversed(waiting))
        self._next()

    def stop(self) -> None:
        """Take no more."""
        if self._end is not None:
            self._end()

    def _arrived(self, row: InboxRow) -> None:
        if row.state != "pending":
            return
        delay_s = (row.due_at - self._ports.clock.now_ms()) / 1000
        if delay_s > 0:
            asyncio.get_running_loop().call_later(delay_s, self._queue, row)
        else:
            self._queue(row)

    def _queue(self, row: InboxRow) -> None:
        self._line.append(row)
        self._next()

    def _next(self) -> None:
        while self._line and self._busy < self._at_once:
            row = self._line.popleft()
            self._busy += 1
            self._ports.spawn(self._carry(row), f"message {row.id}")

    async def _carry(self, row: InboxRow) -> None:
        try:
            await self._kernel.turn(row)
        finally:
            self._busy -= 1
            self._next()

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
        led = {each.run_id: each.led_by for each in found if each.led_by}
        for each in found:
            if each.led_by:
                if each.led_by not in rows:
                    self._ports.spawn(self._joined(rows[each.run_id]), f"message {rows[each.run_id][0].id}")
                continue
            joined = [row for run_id, leader in led.items() if leader == each.run_id for row in rows[run_id]]
            self._busy += 1
            self._ports.spawn(self._again(rows[each.run_id], joined, each), f"message {rows[each.run_id][0].id}")

    async def _joined(self, rows: Sequence[InboxRow]) -> None:
        for row in rows:
            await self._ports.inbox.done(row.id, "joined")

    async def _again(self, rows: Sequence[InboxRow], joined: Sequence[InboxRow], found: Found) -> None:
        try:
            outcome = await self._kernel.resume(rows, found)
            if outcome.why not in ("kept", "again", "stuck"):
                await self._joined(joined)
        finally:
            self._busy -= 1
            self._next()
