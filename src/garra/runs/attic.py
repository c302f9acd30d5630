"""What becomes of sub-agents whose parents were told: their sessions go after a while, their transcripts stay."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

from garra.config.sections import Config
from garra.core.errors import GarraError, NotFound
from garra.core.lineage import Child
from garra.core.value import frozen
from garra.domains.sessions.store import Sessions
from garra.domains.subagents.records import Records
from garra.sdk.ports import Clock, Spawn

log = logging.getLogger(__name__)

SWEEP_S: Final = 60.0
"""How often it is looked whether there is something to put away, while there are such sub-agents."""


@frozen
class Ports:
    """What the table of sub-agents needs when the house is begun."""

    records: Records
    sessions: Sessions
    clock: Clock
    spawn: Spawn
    config: Callable[[], Config]
    new_id: Callable[[], str]


class Table(Protocol):
    """As much of the table of sub-agents as is asked of it."""

    def every(self) -> list[Child]: ...

    def forget(self, child: Child) -> None: ...

    def idle(self, child: Child) -> bool:
        """Whether nothing runs in its session."""
        ...


class Attic:
    """Puts away what is old."""

    def __init__(self, ports: Ports, table: Table) -> None:
        self._ports, self._table = ports, table
        self._sweeping = False

    def sweep_soon(self) -> None:
        """There may be something to put away some day."""
        if not self._sweeping and self._told():
            self._sweeping = True
            self._ports.spawn(self._sweep(), "sub-agents put away")

    def _told(self) -> list[Child]:
        return [child for child in self._table.every() if not child.open]

    async def _sweep(self) -> None:
        try:
            while self._told():
                await self._ports.clock.sleep(SWEEP_S)
                for child in self.old():
                    await self.put_away(child)
        finally:
            self._sweeping = False

    def old(self) -> list[Child]:
        """Those whose time is over (`archiveAfterMinutes`, 0: never) and that nobody uses."""
        minutes = self._ports.config().agents.defaults.subagents.archive_after_minutes
        before = self._ports.clock.now_ms() - minutes * 60_000 if minutes else 0
        return [child for child in self._told() if child.ended_at < before and self._table.idle(child)]

    async def put_away(self, child: Child) -> None:
        """Its session, then its record."""
        if not await self.delete(child):
            return
        try:
            await self._ports.records.remove([child.run_id])
        except GarraError as error:
            log.warning("the record of sub-agent %s is put away later: %s", child.run_id, error.message)
        else:
            self._table.forget(child)

    async def delete(self, child: Child) -> bool:
        """Its session goes, its transcript stays under another name. False where it is to be tried again."""
        try:
            await self._ports.sessions.delete(child.key)
        except NotFound:
            pass
        except GarraError as error:
            log.warning("the session of sub-agent %s is put away later: %s", child.run_id, error.message)
            return False
        return True
