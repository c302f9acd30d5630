"""Which context engine serves; its host is only loaded where one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from garra.config.sections import Config
from garra.core.blots import Blots
from garra.domains.sessions.transcript import Transcript
from garra.runs.run import Run
from garra.sdk.model import Model

if TYPE_CHECKING:
    from garra.domains.context.host import Host, Seat
    from garra.runs.engine import Assembly
    from garra.sdk.context import ContextEngine

BOX: Final = frozenset(("", "legacy", "none"))
"""Names of the engine in the box, which sends everything."""

RECALL: Final = "active-memory"
"""The engine that may also be chosen by being switched on, as the original's plugin of that name is."""


def chosen(config: Config) -> tuple[str, Mapping[str, Any]]:
    """The engine that the configuration names, and its settings; an empty name for the one in the box."""
    plugins = config.plugins
    name = (plugins.slots.context_engine or "").strip()
    if not name and (entry := plugins.entries.get(RECALL)) is not None and entry.enabled:
        name = RECALL
    found = plugins.entries.get(name)
    if name in BOX or (found is not None and found.enabled is False):
        return "", {}
    return name, found.config if found is not None else {}


class Engines:
    """Those of one process. `make` makes one by its name and settings; it blocks, and raises UserError with a line for
    the owner. `tellers` hear of one that is set aside.
    """

    def __init__(self, make: Callable[[str, Mapping[str, Any]], ContextEngine]) -> None:
        self._make = make
        self._host: Host | None = None
        self.tellers: list[Callable[[str], None]] = []

    async def seat(self, config: Config) -> Seat | None:
        """The engine that serves now; None for the one in the box."""
        name, settings = chosen(config)
        if not name:
            return None
        if self._host is None:
            from garra.domains.context.host import Host  # noqa: PLC0415 - most have no engine

            self._host = Host(self._make)
            self._host.tellers.append(self._tell)
        return await self._host.seat(name, settings)

    async def opened(
        self, config: Config, run: Run, transcript: Transcript, *, model: Model, blots: Blots
    ) -> Assembly | None:
        """The engine of a run, which knows the conversation now; None for the one in the box."""
        seat = await self.seat(config)
        if seat is None:
            return None
        from garra.runs import engine  # noqa: PLC0415 - most have no engine

        return await engine.opened(seat, run, transcript, model=model, blots=blots)

    def _tell(self, line: str) -> None:
        for teller in self.tellers:
            teller(line)
