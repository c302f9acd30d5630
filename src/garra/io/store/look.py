"""A look into the state database from beside it: nothing is made, changed or brought up to date."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

WAIT_S = 2.0


def shelf(path: Path, space: str) -> dict[str, Any]:
    """The values of one space of the shelf; empty where there is no database, or it cannot be read. Blocks."""
    if not path.is_file():
        return {}
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=WAIT_S)) as connection:
            rows = connection.execute("SELECT key, value FROM shelf WHERE space=?", (space,)).fetchall()
        return {key: msgspec.json.decode(value) for key, value in rows}
    except (sqlite3.Error, msgspec.DecodeError):
        return {}
