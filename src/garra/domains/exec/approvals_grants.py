"""What was allowed for longer than once: each for one agent and one name of what it lets pass, until it ends."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from garra.core.approvals import Kind, Question
from garra.core.errors import NotFound
from garra.core.value import frozen
from garra.io.store.shelf import Shelf

KEPT_MS = 30 * 24 * 3_600_000
"""How long an ended grant is shown."""


@frozen
class Grant:
    """`covers` is the name of what passes; `about` says it in words. Times are milliseconds, 0 for never."""

    id: str
    kind: Kind
    agent_id: str
    covers: str
    about: str
    by: str
    approval: str
    created_at: int
    expires_at: int = 0
    revoked_at: int = 0
    revoked_by: str = ""
    used_at: int = 0
    uses: int = 0

    def holds(self, now_ms: int) -> bool:
        return not self.revoked_at and (not self.expires_at or now_ms < self.expires_at)


class Grants:
    """All grants; few, so they are kept at hand. `load` before anything else."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._all: dict[str, Grant] = {}

    async def load(self) -> None:
        self._all = {name: msgspec.convert(row, Grant) for name, row in (await self._shelf.items()).items()}

    def all(self) -> list[Grant]:
        """Newest first."""
        return sorted(self._all.values(), key=lambda grant: -grant.created_at)

    def covering(self, question: Question, now_ms: int) -> Grant | None:
        """The grant that answers a question before it is asked."""
        if not question.covers:
            return None
        wanted = (question.kind, question.agent_id, question.covers)
        fitting = (each for each in self._all.values() if (each.kind, each.agent_id, each.covers) == wanted)
        return next((each for each in fitting if each.holds(now_ms)), None)

    async def add(self, grant: Grant) -> Grant:
        """Keep it; what stood under the same name is replaced."""
        same = (grant.kind, grant.agent_id, grant.covers)
        for old in [each for each in self._all.values() if (each.kind, each.agent_id, each.covers) == same]:
            await self._shelf.remove(old.id)
            del self._all[old.id]
        return await self._put(grant, durable=True)

    async def use(self, grant: Grant, now_ms: int) -> None:
        await self._put(replace(grant, used_at=now_ms, uses=grant.uses + 1), durable=False)

    async def revoke(self, name: str, now_ms: int, by: str) -> bool:
        """It holds no more; False where it was revoked before. Raises NotFound."""
        grant = self._all.get(name) or self._starting(name)
        if grant.revoked_at:
            return False
        await self._put(replace(grant, revoked_at=now_ms, revoked_by=by), durable=True)
        return True

    def _starting(self, lead: str) -> Grant:
        found = [grant for name, grant in self._all.items() if len(lead) >= 4 and name.startswith(lead)]
        if len(found) != 1:
            raise NotFound(f"there is no grant {lead[:64]}; see garra approvals grants")
        return found[0]

    async def sweep(self, now_ms: int) -> None:
        old = now_ms - KEPT_MS
        for grant in [each for each in self._all.values() if not each.holds(old)]:
            if max(grant.revoked_at, grant.expires_at) < old:
                await self._shelf.remove(grant.id)
                del self._all[grant.id]

    async def _put(self, grant: Grant, *, durable: bool) -> Grant:
        await self._shelf.set(grant.id, msgspec.to_builtins(grant), durable=durable)
        self._all[grant.id] = grant
        return grant
