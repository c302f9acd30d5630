"""Is work paused, so that nothing is begun."""

from __future__ import annotations

from garra.checks.finding import Finding, Ground
from garra.io.store import look
from garra.runs.switch import KEY, SHELF


def check(ground: Ground) -> list[Finding]:
    if not isinstance(look.shelf(ground.paths.db, SHELF).get(KEY), int):
        return []
    what = "work is paused (garra stop --all, or /stop all of an owner): messages wait, and nothing is begun"
    return [Finding("pause", "warn", what, "", "garra resume, or /resume by an owner, lets it begin again")]
