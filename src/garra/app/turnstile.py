"""One process at a time in a session, where several share a state folder and no gateway stands between them."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from garra.core.errors import Conflict
from garra.core.events import RunEnded, RunEvent
from garra.core.ids import SessionKey
from garra.core.value import record
from garra.io import lock
from garra.sdk.ports import Clock, Spawn

PAUSE_S = 0.1
TELL_S = 2.0


class Sessions(Protocol):
    """As much of the sessions as this needs."""

    async def renew(self, key: str) -> None: ...

    async def flush(self) -> None: ...


@record
class _Held:
    lock: lock.Lock
    turns: int = 1


class Turnstile:
    """Each turn enters its session before it reads it and leaves when it has ended.

    The first one in waits until no other process has a turn there, then has the session read anew. The lock is the
    operating system's and dies with its process. `folder` holds the locks; `tell` shows a line when it takes long.
    """

    def __init__(self, folder: Path, sessions: Sessions, clock: Clock, tell: Callable[[str], None]) -> None:
        self._folder, self._sessions, self._clock, self._tell = folder, sessions, clock, tell
        self._held: dict[SessionKey, _Held] = {}
        self._gates: dict[SessionKey, asyncio.Lock] = {}

    async def enter(self, key: SessionKey) -> None:
        async with self._gates.setdefault(key, asyncio.Lock()):
            held = self._held.get(key)
            if held is not None:
                held.turns += 1
                return
            taken = await self._take(key)
            await self._sessions.renew(key)
            self._held[key] = _Held(taken)

    async def leave(self, key: SessionKey) -> None:
        held = self._held[key]
        held.turns -= 1
        if held.turns == 0:
            del self._held[key]
            try:
                await self._sessions.flush()
            finally:
                held.lock.release()

    def watching(self, spawn: Spawn) -> Callable[[RunEvent], None]:
        """What is to hear of each run: the end of one is a turn that leaves."""

        def heard(event: RunEvent) -> None:
            if isinstance(event.body, RunEnded):
                spawn(self.leave(event.session_key), "end of a turn")

        return heard

    async def _take(self, key: SessionKey) -> lock.Lock:
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.lock"
        tell_at = self._clock.monotonic() + TELL_S
        while True:
            try:
                return await asyncio.to_thread(lock.acquire, path, {"pid": os.getpid()})
            except Conflict as conflict:
                if self._clock.monotonic() >= tell_at:
                    tell_at = float("inf")
                    self._tell(f"Waiting: {_who(conflict)} has a turn in this conversation.")
                await self._clock.sleep(PAUSE_S)


def _who(conflict: Conflict) -> str:
    pid = ((conflict.details or {}).get("holder") or {}).get("pid")
    return f"process {pid}" if pid else "another process"
