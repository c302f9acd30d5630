"""What is wrong with the state database, seen from beside it, and the small damage that can be mended in place."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from garra.core.errors import UserError
from garra.io.store.db import BUSY_MS, explained

_INDEX: Final = " index "
"""What SQLite says where only an index is wrong, which can be made anew from its table."""


def damage(path: Path) -> str:
    """The first thing that is wrong in the file, its log included; empty when nothing is. Blocks."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_MS / 1000)) as found:
            said = str(found.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    return "" if said == "ok" else said


def in_an_index(said: str) -> bool:
    """Whether what `damage` said is about an index alone."""
    return _INDEX in said


def indexed(path: Path) -> None:
    """Make every index anew. Blocks. Raises GarraError; UserError where the file is damaged still."""
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_MS / 1000)) as found:
            found.execute("REINDEX")
    except sqlite3.Error as error:
        raise explained(error, path) from error
    if said := damage(path):
        raise UserError(f"{path} is damaged still: {said}")
