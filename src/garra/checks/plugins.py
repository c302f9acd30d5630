"""Does every plugin that is on load, and is all that it brings offered."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.finding import Finding, Ground, Level
from garra.domains.plugins import known


def check(ground: Ground) -> list[Finding]:
    return list(_faults(ground)) or [Finding("plugins", "ok", "every plugin that is on loads")]


def _faults(ground: Ground) -> Iterator[Finding]:
    config = ground.snapshot.config
    wanted = {name for name, entry in config.plugins.entries.items() if entry.enabled}
    for row in known.tried(ground.paths, config):
        meant = row.id in wanted or row.origin == "bundled"
        off = row.id in wanted and not row.enabled
        if row.broken or off or (row.enabled and row.status != "ready"):
            level: Level = "bad" if row.broken and meant else "warn"
            yield Finding("plugins", level, f"{row.id}: {row.status}", str(row.folder))
