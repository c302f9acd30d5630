"""The gateway's health: gathered now and then, kept as JSON, so that asking costs next to nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from garra.core import frames
from garra.sdk.ports import Clock, Spawn

FRESH_S: Final = 5.0
"""A snapshot younger than this is not gathered again."""

Collect = Callable[[], Awaitable[Mapping[str, Any]]]


async def nothing() -> Mapping[str, Any]:
    """Health before the house is up."""
    return {}


class Health:
    """The last snapshot; who reads it may set off a new one, which the next reader gets."""

    def __init__(self, clock: Clock, spawn: Spawn, changed: Callable[[Any], None], collect: Collect = nothing) -> None:
        self._clock = clock
        self._spawn = spawn
        self._changed = changed
        self.collect = collect
        self.raw = msgspec.Raw(frames.encode({"ok": True, "ts": clock.now_ms(), "durationMs": 0}))
        self._at = -FRESH_S
        self._gathering = False
        self._found: Mapping[str, Any] = {"ok": True}

    def read(self) -> msgspec.Raw:
        """The snapshot as JSON. Never waits."""
        if not self._gathering and self._clock.monotonic() - self._at > FRESH_S:
            self._gathering = True
            self._spawn(self.refresh(), "health")
        return self.raw

    async def refresh(self) -> None:
        """Gather it now and tell everyone when more than its time changed."""
        self._gathering = True
        began = self._clock.monotonic()
        try:
            found = {"ok": True, **await self.collect()}
        finally:
            self._gathering = False
        self._at = self._clock.monotonic()
        took = round((self._at - began) * 1000)
        self.raw = msgspec.Raw(frames.encode({"ts": self._clock.now_ms(), "durationMs": took, **found}))
        if found != self._found:
            self._found = found
            self._changed(self.raw)
