"""All vectors of an index beside each other, compared with one at once. In the child only: it needs numpy."""

from __future__ import annotations

import importlib
import time
from typing import Any, Final

from garra.io.store.db import Connection, Database

MOST: Final = 60_000
"""Vectors that are compared, the newest; further texts are found by their words."""
FRESH_S: Final = 5.0
"""How old the vectors may be while more are being made."""


class Matrix:
    """Read when it is first asked, and again when there are others."""

    def __init__(self, db: Database, model: str) -> None:
        self._db, self._model = db, model
        self._numpy: Any = None
        self._ids: Any = None
        self._rows: Any = None
        self._owners: dict[str, int] = {}
        self._whose: Any = None
        self._session: Any = None
        self._version = ""
        self._read_at = 0.0

    def read(self, vector: bytes) -> Any:
        """A vector as it is stored, to length 1."""
        numpy = self._loaded()
        found = numpy.frombuffer(vector, dtype="<f4")
        return found / (numpy.linalg.norm(found) or 1.0)

    def near(self, vector: Any, owners: list[str], sources: list[str], limit: int) -> list[tuple[int, float]]:
        """Rows of `owners` and `sources` with their cosines, the nearest first."""
        numpy = self._loaded()
        self._refresh()
        if self._rows is None or not len(self._ids) or self._rows.shape[1] != vector.shape[0]:
            return []
        allowed = numpy.isin(self._whose, [self._owners[name] for name in owners if name in self._owners])
        if "sessions" not in sources:
            allowed &= ~self._session
        if "memory" not in sources:
            allowed &= self._session
        scores = numpy.where(allowed, self._rows @ vector, -1.0)
        limit = min(limit, len(scores))
        best = numpy.argpartition(-scores, limit - 1)[:limit]
        best = best[numpy.argsort(-scores[best])]
        return [(int(self._ids[at]), float(scores[at])) for at in best if scores[at] > -1.0]

    def _loaded(self) -> Any:
        if self._numpy is None:
            self._numpy = importlib.import_module("numpy")
        return self._numpy

    def _refresh(self) -> None:
        version = self._db.read_now(_version)
        now = time.monotonic()
        if version == self._version or (self._rows is not None and now - self._read_at < FRESH_S):
            return
        numpy = self._loaded()
        found = self._db.read_now(lambda connection: _vectors(connection, self._model))
        width = len(found[0][1]) if found else 0
        found = [row for row in found if len(row[1]) == width]
        self._rows = numpy.frombuffer(b"".join(row[1] for row in found), dtype="<f4").reshape(len(found), width // 4)
        self._ids = numpy.array([row[0] for row in found], dtype="int64")
        self._owners = {}
        self._whose = numpy.array([self._owners.setdefault(row[2], len(self._owners)) for row in found], dtype="int32")
        self._session = numpy.array([row[3] == "sessions" for row in found], dtype=bool)
        self._version, self._read_at = version, now


def _version(connection: Connection) -> str:
    """Another text whenever rows or vectors changed."""
    return "{}:{}:{}".format(
        *connection.execute(
            "SELECT (SELECT value FROM facts WHERE name='vectors'), (SELECT count(*) FROM chunks), "
            "(SELECT max(id) FROM chunks)"
        ).fetchone()
    )


def _vectors(connection: Connection, model: str) -> list[tuple[int, bytes, str, str]]:
    return connection.execute(
        "SELECT chunks.id, vectors.vector, chunks.owner, chunks.source FROM chunks JOIN vectors "
        "ON vectors.hash=chunks.hash AND vectors.model=? "
        "ORDER BY chunks.source='sessions', chunks.created DESC LIMIT ?",
        (model, MOST),
    ).fetchall()
