"""What model calls cost, in this house: kept in its database, by days of its owner."""

from __future__ import annotations

import asyncio
from datetime import tzinfo

from garra.config.live import Live
from garra.config.sections import Config
from garra.core.groups import Place
from garra.domains.context import stamps
from garra.domains.spending.ledger import Ledger
from garra.io.store.db import Database
from garra.runs.purse import Books, Purse
from garra.runs.subagents import Subagents
from garra.sdk.ports import Clock, Spawn


class Zone:
    """The owner's time zone, which follows the configuration; None is the machine's."""

    def __init__(self, live: Live, spawn: Spawn) -> None:
        self._live, self._spawn = live, spawn
        self.now: tzinfo | None = None

    @property
    def name(self) -> str:
        return self._live.config.time_zone

    async def read(self) -> None:
        self.now = await asyncio.to_thread(stamps.zone, self.name) if self.name else None

    def follow(self, old: Config, new: Config) -> None:
        if old.time_zone != new.time_zone:
            self._spawn(self.read(), "time zone")


async def made(db: Database, live: Live, family: Subagents, *, clock: Clock, spawn: Spawn) -> Purse:
    """The purse that all runs of this house pay from."""
    zone = Zone(live, spawn)
    await zone.read()
    live.subscribe(zone.follow)
    ledger = Ledger(db, clock, lambda: zone.now)
    await ledger.load()

    def parent(key: str) -> tuple[str, str, Place | None] | None:
        child = family.get(key)
        return (child.home.key, child.home.run_id, child.home.place) if child is not None else None

    return Purse(Books(ledger, lambda: live.config, clock, parent, lambda: zone.name))
