"""Puts old conversations away, and makes room: what `core.retention` decides is done here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from garra.core import keys, retention
from garra.core.errors import GarraError
from garra.core.value import frozen
from garra.domains.sessions.session import Session
from garra.domains.sessions.store import Query, Sessions

if TYPE_CHECKING:
    from garra.config.sections.session import Maintenance

log = logging.getLogger(__name__)
COPY = ".deleted."
EVERY = 1_000_000


@frozen
class Outcome:
    """What was done, or would be: keys put away and why, keys removed, and files with their bytes."""

    archived: tuple[tuple[str, str], ...] = ()
    removed: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0

    def shown(self) -> dict[str, Any]:
        """As JSON."""
        actions = [{"key": key, "action": "archive", "archiveReason": why} for key, why in self.archived]
        actions += [{"key": key, "action": "delete"} for key in self.removed]
        return {
            "archived": len(self.archived),
            "pruned": len(self.removed),
            "removedFiles": self.files,
            "freedBytes": self.bytes,
            "actions": actions,
        }


def policy(settings: Maintenance) -> retention.Policy:
    """The rules that a configuration sets."""
    kept = settings.reset_archive_retention
    return retention.Policy(
        retention.duration(settings.prune_after),
        settings.max_entries,
        retention.duration(kept) if kept else None,
        settings.max_disk_bytes,
        settings.high_water_bytes or settings.max_disk_bytes * 4 // 5,
    )


class Keeping:
    """`busy` says whether a conversation has work under way, `main` is what an agent's own is called."""

    def __init__(self, sessions: Sessions, root: Path, busy: Callable[[str], bool], main: str = "main") -> None:
        self._sessions, self._root, self._busy, self._main = sessions, root, busy, main

    async def clean(self, rules: retention.Policy, now: int, *, dry: bool, agent_id: str | None = None) -> Outcome:
        """Do what the rules ask for; `dry` only says what that would be."""
        page = await self._sessions.list(Query(agent_id=agent_id, archived=False, limit=EVERY))
        wanted = retention.pruning(map(self._row, page.sessions), now, rules)
        found = await asyncio.to_thread(scanned, self._root, agent_id)
        going = [file for agent in found.values() for file in retention.files(agent, now, rules)]
        size = sum(file.size for file in going)
        if dry:
            return Outcome(wanted.archive, wanted.remove, len(going), size)
        archived = [(key, why) for key, why in wanted.archive if await self._archived(key, why)]
        removed = [key for key in wanted.remove if await self._removed(key)]
        await asyncio.to_thread(_unlinked, [Path(file.path) for file in going])
        done = Outcome(tuple(archived), tuple(removed), len(going), size)
        if archived or removed or going:
            told = len(archived), len(removed), len(going)
            log.info("sessions: %d put away, %d removed, %d old copies deleted", *told)
        return done

    def _row(self, session: Session) -> retention.Row:
        kind = keys.parse(session.key).kind
        main = keys.is_main(session.key, self._main)
        busy = self._busy(session.key)
        return retention.Row(
            session.key, session.updated_at, session.archived, session.pinned, busy, main, kind in ("group", "channel")
        )

    async def _archived(self, key: str, why: str) -> bool:
        try:
            await self._sessions.record(key, archived=True, extra={"archiveReason": why})
        except GarraError as fault:
            log.warning("%s cannot be put away: %s", key, fault)
            return False
        return True

    async def _removed(self, key: str) -> bool:
        try:
            await self._sessions.delete(key)
        except GarraError as fault:
            log.warning("%s cannot be removed: %s", key, fault)
            return False
        return True


def scanned(root: Path, agent_id: str | None = None) -> dict[str, list[retention.File]]:
    """The files of each agent's conversations. Blocks."""
    found: dict[str, list[retention.File]] = {}
    for folder in sorted(root.glob(f"{agent_id or '*'}/sessions")):
        for path in folder.iterdir():
            if path.is_file() and not path.is_symlink():
                stat = path.stat()
                file = retention.File(str(path), stat.st_size, stat.st_mtime_ns // 1_000_000, COPY in path.name)
                found.setdefault(folder.parent.name, []).append(file)
    return found


def _unlinked(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
