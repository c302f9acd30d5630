"""Background commands as they outlive the process that ran them: what was running is told after a restart.

A command ends with the gateway; what is kept is that it ran, and what it last said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from garra.core.ids import SessionKey
from garra.io.store.shelf import Shelf
from garra.sdk.ports import Clock, Ran

SPACE: Final = "background"
LIFE_MS: Final = 86_400_000
KEPT: Final = 50
"""How many of one session are remembered over a restart."""
LAST: Final = 2_000
"""Characters of its output that are kept of each."""
CUT_OFF: Final = "it ended when the gateway did"


class Records:
    """The background commands of earlier processes, and those of this one for the next. `load` before the first."""

    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf, self._clock = shelf, clock
        self._before: dict[SessionKey, dict[str, Ran]] = {}

    async def load(self) -> None:
        """Take up what earlier processes left: what had not ended is over; what is old is forgotten."""
        found = sorted(((key, _read(value)) for key, value in (await self._shelf.items()).items()), key=_begun)
        for key, ran in found:
            session_key, _, name = key.rpartition("/")
            known = self._before.setdefault(SessionKey(session_key), {})
            if ran is None or self._clock.now_ms() - ran.started_at > LIFE_MS or len(known) >= KEPT:
                await self._shelf.remove(key)
            elif ran.status == "running":
                known[name] = replace(ran, status="killed", notes=(*ran.notes, CUT_OFF))
                await self.keep(SessionKey(session_key), known[name])
            else:
                known[name] = ran

    async def keep(self, session_key: SessionKey, ran: Ran) -> None:
        """Write down how it is now."""
        value = msgspec.to_builtins(replace(ran, output=ran.output[-LAST:]))
        await self._shelf.set(f"{session_key}/{ran.session}", value)

    def of(self, session_key: SessionKey) -> Sequence[Ran]:
        """Those of earlier processes, newest first."""
        return list(self._before.get(session_key, {}).values())

    def find(self, session_key: SessionKey, name: str) -> Ran | None:
        return self._before.get(session_key, {}).get(name)


def _read(value: Any) -> Ran | None:
    try:
        return msgspec.convert(value, Ran)
    except msgspec.ValidationError:
        return None


def _begun(item: tuple[str, Ran | None]) -> int:
    return -item[1].started_at if item[1] is not None else 0
