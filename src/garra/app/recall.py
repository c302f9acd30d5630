"""The port `recall` and the tools of memory, in front of an index that is opened when it is first asked.

What searches is loaded only then: a gateway at rest has nothing of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from garra.config.sections import Config
from garra.core.errors import Unavailable
from garra.core.ids import AgentId
from garra.core.policy import Layer
from garra.runs.errand import Errand

if TYPE_CHECKING:
    from garra.app.memory import Remembering
    from garra.core.events import RunEvent
    from garra.sdk.context import Recalled

TOOLS: Final = ("memory_search", "memory_get")
ERRANDS: Final = ("memory.recall", "memory.get")
WHERE: Final = "memory"
"""Where it stands in `Host.more`."""


class Recalls:
    """`sdk.context.Recall`; `make` makes what it is answered by, once. `nights` are the gateway's, where one runs."""

    def __init__(self, config: Callable[[], Config], make: Callable[[], Remembering]) -> None:
        self._config, self._make = config, make
        self._made: Remembering | None = None
        self.nights: Any = None

    @property
    def on(self) -> bool:
        """Whether there is memory at all."""
        config = self._config()
        return config.plugins.slots.memory != "none" and config.memory.search.enabled

    def memory(self) -> Remembering:
        """Raises Unavailable where memory is switched off."""
        if not self.on:
            raise Unavailable("memory is switched off (plugins.slots.memory, memory.search.enabled)")
        if self._made is None:
            self._made = self._make()
        return self._made

    def layers(self) -> tuple[Layer, ...]:
        """Takes the tools away where memory is switched off."""
        if self.on:
            return ()
        remedy = "To switch it on: garra config unset plugins.slots.memory; garra config set memory.search.enabled true"
        return (Layer("memory is switched off", None, TOOLS, remedy=remedy),)

    async def search(self, query: str, *, agent_id: AgentId, owner: str, limit: int) -> tuple[Recalled, ...]:
        return await self.memory().search(query, agent_id=agent_id, owner=owner, limit=limit)

    async def ask(self, errand: Errand, method: str, params: Mapping[str, Any]) -> Any:
        """What the tools of memory ask, as the turn they were called in."""
        return await self.memory().errands[method](errand, params)

    def heard(self, event: RunEvent) -> None:
        """A turn has ended: there may be something new to find."""
        if self._made is not None:
            self._made.heard(event)

    def notice(self, agent_id: str) -> None:
        """A file of memory has changed."""
        if self._made is not None:
            self._made.memory.notice(agent_id)

    async def close(self) -> None:
        if self._made is not None:
            await self._made.memory.close()


def loaded() -> Any:
    """The module that searches."""
    return importlib.import_module("garra.app.memory")
