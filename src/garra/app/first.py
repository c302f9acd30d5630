"""What the owner is told beside the answers, and what happens before the first turn of a model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from garra.domains.models.detect import Scout, measure
from garra.domains.models.registry import Models
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.runs.run import Turn
from garra.sdk.ports import Http


class Progress:
    """Tells how far a download is, at most every two seconds."""

    def __init__(self, tell: Callable[[str], None], clock: SystemClock) -> None:
        self._tell, self._clock = tell, clock
        self._told = float("-inf")

    def __call__(self, done: int, total: int, source: str) -> None:
        now = self._clock.monotonic()
        if now - self._told >= 2 or done >= total:
            self._told = now
            self._tell(f"Fetching the model from {source}: {done >> 20} of {total >> 20} MB")


class Told:
    """Tells the owner something long once, and briefly when it is so again."""

    def __init__(self, db: Database, tell: Callable[[str], None]) -> None:
        self._shelf = Shelf(db, "told")
        self._tell = tell

    async def __call__(self, key: str, words: str, brief: str) -> None:
        known = await self._shelf.get(key)
        self._tell(brief if known else words)
        if not known:
            await self._shelf.set(key, True)


class FirstPick:
    """Before a turn: finds a model where none is configured, once, and says which; learns a new one's window. `ready`
    has what its provider's server says of it known.
    """

    def __init__(
        self, models: Models, scout: Scout, http: Http, told: Told, *, ready: Callable[[str, str], Awaitable[None]]
    ) -> None:
        self._models, self._scout, self._http, self._told = models, scout, http, told
        self._ready = ready
        self._measured: set[str] = set()
        self._turn_by_turn = asyncio.Lock()

    async def __call__(self, turn: Turn) -> None:
        async with self._turn_by_turn:
            ref = turn.model or self._models.primary(turn.agent_id)
            if ref:
                await self._ready(ref, turn.agent_id)
            if not ref and not self._models.picked:
                found = await self._scout.pick(self._models)
                await self._told(f"model {found.how} {found.ref}", found.words, f"Using {found.ref}.")
            elif ref and ref not in self._measured:
                self._measured.add(ref)
                await measure(self._models, self._http, ref)
