"""The first message of a conversation that was begun anew: before it, the diary of today and yesterday is told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

from garra.config.sections.agents import StartupContext
from garra.core import taint
from garra.core.errors import ToolFailed
from garra.core.openings import Limits, recent
from garra.core.transcript import Entry
from garra.domains.sessions.renewed import BEFORE
from garra.domains.sessions.session import Session
from garra.runs.errand import errand_of
from garra.runs.run import Run
from garra.sdk.ports import Files

DIARY: Final = "garra:diary"
"""The entry that tells a new conversation of the diary."""
FILES: Final = 8
"""Pages that are read, at the most."""


def wanted(run: Run, session: Session, settings: StartupContext) -> bool:
    """Whether this run begins a conversation that is told: the owner's own, begun anew by hand."""
    before = session.extra.get(BEFORE)
    if not settings.enabled or run.turn.chore or not errand_of(run, ()).owners:
        return False
    return isinstance(before, dict) and before.get("reason") in settings.apply_on


def told(entries: Iterable[Entry]) -> bool:
    """Whether it was told before the program ended."""
    return any(each.body.get("customType") == DIARY for each in entries)


def body(files: Files, now_ms: int, zone: tzinfo, settings: StartupContext) -> dict[str, Any] | None:
    """The entry that tells it; None where nothing was written down. Blocks."""
    limits = Limits(settings.max_file_chars, settings.max_total_chars)
    found = recent(_pages(files, now_ms, zone, settings), limits)
    if found is None:
        return None
    return {"customType": DIARY, "content": found.text, "display": False, **taint.stored(found.marks)}


def _pages(files: Files, now_ms: int, zone: tzinfo, settings: StartupContext) -> Iterator[tuple[str, str]]:
    """The newest pages first."""
    today = datetime.fromtimestamp(now_ms / 1000, zone).date()
    days = [f"{today - timedelta(days=ahead):%Y-%m-%d}" for ahead in range(settings.daily_memory_days)]
    names = "|".join(map(re.escape, days)) or "-"
    pattern = re.compile(rf"memory/({names})[^/]*\.md")
    try:
        listed = [each for each in files.entries("memory") if each.kind == "file" and pattern.fullmatch(each.path)]
    except ToolFailed:
        return
    for each in sorted(listed, key=lambda each: each.path, reverse=True)[:FILES]:
        size = settings.max_file_bytes
        try:
            data, _ = files.read_range(each.path, max(0, each.size - size), size)
        except ToolFailed:
            continue
        yield each.path, data.decode("utf-8", "replace")
