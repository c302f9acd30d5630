"""Dreaming as a gateway has it: made when it is first asked for, and begun by itself where the owner switched it on."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from garra.core.errors import GarraError

if TYPE_CHECKING:
    from garra.app.dreaming import Dreams
    from garra.app.house import House
    from garra.gateway.host import Host

log = logging.getLogger(__name__)

WHERE: Final = "dreams"
"""Where it stands in `Host.more`."""
EVERY_S: Final = 60.0
FIRST_S: Final = 120.0


def _loaded(house: House) -> Dreams:
    made: Dreams = importlib.import_module("garra.app.dreaming").Dreams(house)
    return made


class Nights:
    """What dreams in this house. Nothing of it is loaded before it is asked for, or due."""

    def __init__(self, house: House, make: Callable[[House], Dreams] = _loaded) -> None:
        self._house, self._make = house, make
        self._made: Dreams | None = None

    def dreams(self) -> Dreams:
        """Raises Unavailable where memory is switched off."""
        self._house.recalls.memory()
        if self._made is None:
            self._made = self._make(self._house)
        return self._made

    @property
    def on(self) -> bool:
        """Whether there is memory that could be dreamt of."""
        return self._house.recalls.on

    @property
    def enabled(self) -> bool:
        """Whether it is done by itself."""
        entry = self._house.live.config.plugins.entries.get("memory-core")
        found = entry.config.get("dreaming") if entry is not None else None
        return self.on and isinstance(found, Mapping) and found.get("enabled") is True

    async def said(self, agent: str, words: str, *, owner: bool) -> str:
        """What `/dreaming` answers. Raises UserError."""
        return await self.dreams().said(agent, words, owner=owner)

    async def run(self) -> None:
        """Until cancelled: a sweep over each agent's memory at the times of `dreaming.frequency`."""
        clock = self._house.clock
        await clock.sleep(FIRST_S)
        looked = clock.now_ms()
        while True:
            await clock.sleep(EVERY_S)
            now = clock.now_ms()
            if self.enabled:
                await self._due(looked, now)
            looked = now

    async def _due(self, looked: int, now: int) -> None:
        try:
            if await self.dreams().due(looked, now):
                for agent in self._house.live.config.agents.ids():
                    await self.sweep(agent)
        except GarraError as fault:
            log.warning("the agent does not dream: %s", fault.message)

    async def sweep(self, agent: str) -> dict[str, Any]:
        """One sweep, told in the log."""
        done = await self.dreams().dream(agent, {})
        made = ", ".join(f"{each['id']} ({each['state']})" for each in done["dreams"])
        log.info("%s dreamt of %d lines; proposals: %s", agent, done["candidates"], made or "none")
        return done


def watch(house: House, host: Host) -> None:
    """Let the gateway have it."""
    nights = house.recalls.nights = Nights(house)
    host.more[WHERE] = nights
    house.spawn(nights.run(), "dreams")


async def said(house: House, agent: str, words: str, owner: bool) -> str:  # noqa: FBT001 - a port of the chats
    """What `/dreaming` answers. Raises UserError."""
    nights: Nights = house.recalls.nights or Nights(house)
    return await nights.said(agent, words, owner=owner)
