"""Another program's SQLite files, read without a trace: from a copy, with what its log still holds."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from garra.core.errors import UserError


class Foreign:
    """An open copy."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def rows(self, query: str, values: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
        """The rows of a query, by the names of their columns. Raises UserError for a file that is not what it seems."""
        try:
            cursor = self._connection.execute(query, values)
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))
        except sqlite3.Error as error:
            raise UserError(f"{self._path} cannot be read: {error}") from error

    def has(self, table: str) -> bool:
        return next(self.rows("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", (table,)), None) is not None


@contextmanager
def opened(path: Path) -> Iterator[Foreign]:
    """A copy of the file and of its log, until the block ends. Blocks. Raises UserError where it cannot be read."""
    with tempfile.TemporaryDirectory(prefix="garra-look-") as folder:
        copy = Path(folder) / path.name
        try:
            shutil.copyfile(path, copy)
            log = path.with_name(f"{path.name}-wal")
            if log.is_file():
                shutil.copyfile(log, copy.with_name(log.name))
            with closing(sqlite3.connect(copy)) as connection:
                yield Foreign(connection, path)
        except (OSError, sqlite3.Error) as error:
            raise UserError(f"{path} cannot be read: {error}") from error
