"""Is the state folder ours alone, writable, and is there room."""

from __future__ import annotations

import os
import shutil

from garra.checks.finding import Finding, Ground

LOW, NONE = 200 << 20, 20 << 20


def check(ground: Ground) -> list[Finding]:
    folder = ground.paths.state
    if not folder.exists():
        above = next(parent for parent in folder.parents if parent.exists())
        if os.access(above, os.W_OK):
            return [Finding("state", "ok", "the state folder does not exist yet; it is made when needed", str(folder))]
        how = f"choose another with {ground.paths.prefix}_STATE_DIR, or make {above} writable"
        return [Finding("state", "bad", "the state folder cannot be made", str(folder), how)]
    if not folder.is_dir():
        return [Finding("state", "bad", "the state folder is no folder", str(folder), "move the file away")]
    return [*_mode(ground), *_writable(ground), *_room(ground)]


def _mode(ground: Ground) -> list[Finding]:
    folder = ground.paths.state
    mode = folder.stat().st_mode & 0o777
    if not mode & 0o077:
        return [Finding("state", "ok", "the state folder is closed to others", str(folder))]

    def close() -> str:
        folder.chmod(0o700)
        return f"closed {folder} to others (mode 700)"

    what = f"others can look into the state folder (mode {mode:o})"
    return [Finding("state", "warn", what, str(folder), f"chmod 700 {folder}", close)]


def _writable(ground: Ground) -> list[Finding]:
    folder = ground.paths.state
    if os.access(folder, os.W_OK | os.X_OK):
        return []
    how = f"give this user the right to write there, or choose another folder with {ground.paths.prefix}_STATE_DIR"
    return [Finding("state", "bad", "the state folder cannot be written", str(folder), how)]


def _room(ground: Ground) -> list[Finding]:
    folder = ground.paths.state
    free = shutil.disk_usage(folder).free
    what = f"{free >> 20:,} MiB free on the disk"
    if free >= LOW:
        return [Finding("state", "ok", what, str(folder))]
    return [
        Finding("state", "bad" if free < NONE else "warn", what, str(folder), "make room: nothing can be stored else")
    ]
