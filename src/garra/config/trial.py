"""A change on trial: it is taken back by itself unless somebody confirms it in time.

For changes that might cut off whoever made them (an agent that changes the gateway it lives in). What to go back to is
on the disk before the change is made, so that a restart, even a forced one, does not make the change stay.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

from garra.config.load import Snapshot, digest
from garra.config.paths import Paths
from garra.config.write import Writer
from garra.core.errors import Conflict, GarraError, Unavailable
from garra.io.files import atomic

log = logging.getLogger(__name__)


def record(paths: Paths) -> FilePath:
    """Where a trial is noted; it exists as long as one runs."""
    return paths.state / f"{paths.config_file.name}.trial"


def begin(paths: Paths, writer: Writer, make: Callable[[Writer], Snapshot], until_ms: int) -> Snapshot:
    """Make a change that is taken back at `until_ms` (since 1970) unless confirmed.

    Raises Conflict when one is on trial already, and what the writer raises (then nothing is on trial).
    """
    if record(paths).exists():
        raise Conflict("another change of the configuration is on trial; confirm it or wait for its end")
    before = atomic.read(paths.config_file) if paths.config_file.exists() else ""
    _note(paths, before, "", until_ms)
    try:
        found = make(writer)
    except GarraError:
        confirm(paths)
        raise
    _note(paths, before, found.hash, until_ms)
    return found


def confirm(paths: Paths) -> bool:
    """Let the change stay. False when none is on trial."""
    running = record(paths).exists()
    record(paths).unlink(missing_ok=True)
    return running


def settle(paths: Paths, writer: Writer, now_ms: int) -> Snapshot | None:
    """Take the change back if its time is over; the snapshot that serves again, or None when there was nothing to do.

    A file that somebody has changed since is left as it is.
    """
    found = _noted(paths)
    if found is None or now_ms < found["until"]:
        return None
    current = atomic.read(paths.config_file) if paths.config_file.exists() else ""
    taken = None
    if found["hash"] in ("", digest(current)) and current != found["before"]:
        taken = writer.replace(found["before"] or "{}", digest(current), shrink=True)
        log.warning("a change of %s was not confirmed in time and is taken back", paths.config_file)
    confirm(paths)
    return taken


def _note(paths: Paths, before: str, after: str, until_ms: int) -> None:
    data = {"until": until_ms, "hash": after, "before": before}
    atomic.write(record(paths), json.dumps(data).encode())


def _noted(paths: Paths) -> dict[str, Any] | None:
    try:
        found = json.loads(atomic.read(record(paths)))
    except (FileNotFoundError, Unavailable, ValueError):
        return None
    return found if isinstance(found, dict) and {"until", "hash", "before"} <= set(found) else None
