"""Is the agent's workspace there, and does the machine's clock make sense."""

from __future__ import annotations

from garra.checks.finding import Finding, Ground
from garra.core.errors import GarraError
from garra.io.clock import SystemClock
from garra.runs import ground as floor

YEAR_MS = 31_557_600_000
BORN_MS = 56 * YEAR_MS
"""No clock that is right says less: 2026."""


def check(ground: Ground) -> list[Finding]:
    return [*_workspace(ground), *_clock(ground)]


def _workspace(ground: Ground) -> list[Finding]:
    config = ground.snapshot.config
    agent = config.agents.default_id()
    folder = ground.paths.workspace(agent, config)
    if folder.is_dir():
        return [Finding("workspace", "ok", "the agent's workspace is there", str(folder))]
    marker = floor.marker(ground.paths, agent)
    if not marker.exists():
        return [Finding("workspace", "ok", "the workspace does not exist yet; the first turn makes it", str(folder))]

    def make() -> str:
        marker.rename(marker.with_name(f"{marker.name}.before"))
        try:
            floor.furnish(ground.paths, config, SystemClock())
        except GarraError:
            marker.with_name(f"{marker.name}.before").rename(marker)
            raise
        return f"made a new workspace in {folder}"

    how = "bring the folder back (a disk that is not mounted, perhaps), or let garra doctor --fix make a new one"
    return [Finding("workspace", "bad", "the agent's workspace is gone", str(folder), how, make)]


def _clock(ground: Ground) -> list[Finding]:
    now = SystemClock().now_ms()
    if now >= BORN_MS:
        return []
    how = "set the clock (timedatectl set-ntp true): keys, logins and schedules go by it"
    return [Finding("clock", "bad", "the machine's clock is years behind", "", how)]
