"""Copies of SQLite files, whole and of one moment, also while a gateway writes to them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from garra.core.errors import UserError
from garra.io.files import atomic
from garra.io.store.db import BUSY_MS, explained

PAGES = 2_048
"""So many pages are copied at a time; a writer waits no longer than for these."""


def copy(source: Path, target: Path) -> None:
    """Copy a database as it stands now, its log included, to a file of its owner's alone. Blocks.

    Raises UserError where the source is no database, Unavailable where it or the disk is held up.
    """
    atomic.folder(target.parent)
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, atomic.FILE_MODE))
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_MS / 1000)) as old,
            closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new, pages=PAGES)
            new.execute("PRAGMA journal_mode=DELETE").fetchall()
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise explained(error, source) from error


def schema(path: Path) -> int:
    """How many migrations the file has gone; 0 for an empty or absent one. Blocks. Raises UserError as `copy`."""
    if not path.is_file():
        return 0
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as found:
            return int(found.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error as error:
        raise explained(error, path) from error


def sound(path: Path) -> None:
    """Read the whole file. Blocks. Raises UserError with the first thing that is wrong in it."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as found:
            said = str(found.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        raise explained(error, path) from error
    if said != "ok":
        raise UserError(f"{path} is damaged: {said}")


def database(path: Path) -> bool:
    """Whether a file begins as SQLite's do. Blocks. Raises OSError."""
    with path.open("rb") as stream:
        return stream.read(16) == b"SQLite format 3\0"


def emptied(path: Path, tables: Sequence[str]) -> None:
    """Leave nothing in these tables of a copy, nor in the pages they had. Blocks. Raises UserError."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as found:
            there = {row[0] for row in found.execute("SELECT name FROM sqlite_master WHERE type='table'")}
            for table in tables:
                if table in there:
                    found.execute(f'DELETE FROM "{table}"')
            found.execute("VACUUM")
    except sqlite3.Error as error:
        raise explained(error, path) from error
