"""Every question that agents ask people: kept on the disk, asked once, answered once, and no longer than it lives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, Protocol

from garra.core import questions
from garra.core.errors import Conflict, GarraError, NotFound
from garra.core.questions import Record, Status
from garra.sdk.ports import Clock, Spawn

log = logging.getLogger(__name__)

KEPT_MS: Final = 86_400_000
"""How long one that has ended is kept, for clients that ask again."""


class Listener(Protocol):
    """Told of each record that was asked or has ended, and whether a turn waits for it."""

    def __call__(self, record: Record, *, waited: bool) -> None: ...


class Shelf(Protocol):
    """As much of a shelf as questions need."""

    async def items(self) -> dict[str, Any]: ...

    async def set(self, key: str, value: Any, *, durable: bool = False) -> None: ...

    async def remove(self, key: str, *, durable: bool = False) -> bool: ...


class Questions:
    """All of them; few, so they are kept at hand. `load` before anything else."""

    def __init__(self, shelf: Shelf, clock: Clock, spawn: Spawn, new_id: Callable[[], str]) -> None:
        self._shelf, self._clock, self._spawn, self._new_id = shelf, clock, spawn, new_id
        self._records: dict[str, Record] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self._waits: dict[str, int] = {}
        self._listeners: list[Listener] = []

    async def load(self) -> None:
        """What an earlier process left; what has expired meanwhile ends now."""
        for key, raw in (await self._shelf.items()).items():
            try:
                record = questions.loaded(raw)
            except (GarraError, TypeError, ValueError):
                await self._shelf.remove(key)
                continue
            if record.expires_at + KEPT_MS < self._clock.now_ms():
                await self._shelf.remove(key)
                continue
            self._records[record.id] = record
            if record.pending:
                self._watch(record)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with what was asked and what has ended. The call ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def pending(self) -> list[Record]:
        """What waits for an answer, oldest first."""
        return sorted((each for each in self._records.values() if each.pending), key=lambda each: each.created_at)

    def get(self, id_: str) -> Record:
        """Raises NotFound."""
        found = self._records.get(id_)
        if found is None:
            raise NotFound(f"there is no question {id_[:64]}")
        return found

    def here(self, place: tuple[str, str, str, str], requester: str) -> Record | None:
        """The newest question that this person was asked in this chat."""
        found = [each for each in self.pending() if each.place == place and each.requester == requester]
        return found[-1] if found else None

    def waited(self, id_: str) -> bool:
        """Whether a turn waits for it."""
        return self._waits.get(id_, 0) > 0

    async def ask(self, record: Record, life_s: float) -> Record:
        """Keep it and tell of it; an older one of the same session is not needed any more. Raises Conflict."""
        now = self._clock.now_ms()
        asked = replace(record, id=record.id or self._new_id(), created_at=now, expires_at=now + round(life_s * 1000))
        if asked.id in self._records:
            raise Conflict(f"there is a question {asked.id[:64]} already")
        for each in self.pending():
            if asked.session_key and each.session_key == asked.session_key:
                await self.end(each.id, "cancelled")
        self._records[asked.id] = asked
        await self._shelf.set(asked.id, questions.stored(asked), durable=True)
        self._watch(asked)
        self._tell(asked)
        return asked

    async def end(
        self, id_: str, status: Status, found: Mapping[str, tuple[str, ...]] | None = None, by: str = ""
    ) -> Record:
        """End it. Raises NotFound, Conflict for one that has ended already."""
        record = self.get(id_)
        if not record.pending:
            raise Conflict(f"the question was {record.status} already")
        over = self._records[id_] = questions.ended(record, status, found, by)
        await self._shelf.set(id_, questions.stored(over), durable=True)
        self._tell(over)
        self._ends.pop(id_, asyncio.Event()).set()
        return over

    async def wait(self, id_: str, timeout_s: float | None = None) -> Record:
        """The record once it has ended, or as it is after `timeout_s`. Raises NotFound."""
        record = self.get(id_)
        if not record.pending:
            return record
        with self.awaited(id_):
            try:
                async with asyncio.timeout(timeout_s):
                    await self._ends.setdefault(id_, asyncio.Event()).wait()
            except TimeoutError:
                pass
        return self.get(id_)

    @contextmanager
    def awaited(self, id_: str) -> Iterator[None]:
        """While it lasts, a turn waits for it."""
        self._waits[id_] = self._waits.get(id_, 0) + 1
        try:
            yield
        finally:
            self._waits[id_] -= 1
            if not self._waits[id_]:
                del self._waits[id_]

    def _watch(self, record: Record) -> None:
        self._spawn(self._expire(record), f"question {record.id}")

    async def _expire(self, record: Record) -> None:
        await self._clock.sleep(max(0.0, (record.expires_at - self._clock.now_ms()) / 1000))
        if self.get(record.id).pending:
            await self.end(record.id, "expired")

    def _tell(self, record: Record) -> None:
        for listener in list(self._listeners):
            listener(record, waited=self.waited(record.id))
