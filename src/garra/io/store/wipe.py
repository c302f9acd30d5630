"""The database written anew, so that what was deleted is on the disk no longer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from garra.core.errors import Unavailable


def wiped(path: Path) -> None:
    """Blocks. Nobody else may have it open. Raises Unavailable where the disk refuses."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise Unavailable(
            f"{path} cannot be written anew: {error}; what was deleted may still be read from it"
        ) from error
