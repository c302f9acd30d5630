"""The port `recall`: what agents remember, searched where the house has an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from garra.core.errors import Unavailable
from garra.core.ids import AgentId

if TYPE_CHECKING:
    from garra.sdk.context import Recall, Recalled


class Recalls:
    """`sdk.context.Recall` in front of `source`, which is set once there is an index."""

    def __init__(self) -> None:
        self.source: Recall | None = None

    async def search(self, query: str, *, agent_id: AgentId, owner: str, limit: int) -> tuple[Recalled, ...]:
        if self.source is None:
            raise Unavailable("memory is not indexed here")
        return await self.source.search(query, agent_id=agent_id, owner=owner, limit=limit)
