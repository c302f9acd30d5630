"""The rows of the index. Plain functions of a connection, run by `Database.read` and `write`.

`hash` is empty for what is worth no vector; else it names the text that one is made of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from garra.core import taint
from garra.core.memory_chunks import Chunk, spoken, worth
from garra.core.memory_rank import Found
from garra.core.memory_words import split
from garra.core.taint import Mark
from garra.core.value import frozen
from garra.io.store.db import Connection

KEYWORDS: Final = 400
"""Rows that a question's words may give, the best first."""


@frozen
class File:
    """One source as it was indexed; `state` says where reading goes on."""

    path: str
    source: str
    session: str
    size: int
    changed: int
    digest: str = ""
    state: str = ""


@frozen
class Row:
    """One piece of the index. Lines from 1, both ends counted; `created` in milliseconds since 1970."""

    id: int
    path: str
    source: str
    first: int
    last: int
    text: str
    owner: str
    session: str
    created: int
    told: str = ""

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What of it came from outside."""
        return _unpacked(self.told)

    @property
    def found(self) -> Found:
        return Found(self.id, self.path, self.text, self.created, self.source)


def files(connection: Connection) -> dict[str, File]:
    rows = connection.execute("SELECT path, source, session, size, changed, digest, state FROM files").fetchall()
    return {row[0]: File(*row) for row in rows}


def put(connection: Connection, file: File, chunks: Iterable[Chunk], owner: str = "", *, after: int = 0) -> None:
    """Write what a file holds behind its line `after`; what was there before is replaced."""
    _clear(connection, file.path, after)
    for chunk in chunks:
        vector = hashlib.blake2b(spoken(chunk.text).encode("utf-8", "replace"), digest_size=16).hexdigest()
        cursor = connection.execute(
            "INSERT INTO chunks (path, source, first, last, text, owner, session, created, marks, hash) "
            "VALUES (?,?,?,?,?,?,?,?,?,?)",
            (
                file.path, file.source, chunk.start, chunk.end, chunk.text,
                owner if chunk.owner is None else chunk.owner, file.session,
                chunk.created or file.changed, _packed(chunk.marks), vector if worth(chunk.text) else "",
            ),
        )  # fmt: skip
        connection.execute("INSERT INTO words (rowid, text) VALUES (?,?)", (cursor.lastrowid, split(chunk.text)))
    connection.execute(
        "INSERT OR REPLACE INTO files (path, source, session, size, changed, digest, state) VALUES (?,?,?,?,?,?,?)",
        (file.path, file.source, file.session, file.size, file.changed, file.digest, file.state),
    )


def drop(connection: Connection, path: str) -> None:
    """Forget a file."""
    _clear(connection, path, 0)
    connection.execute("DELETE FROM files WHERE path=?", (path,))


def _clear(connection: Connection, path: str, after: int) -> None:
    rows = connection.execute("SELECT id FROM chunks WHERE path=? AND first>?", (path, after)).fetchall()
    connection.executemany("DELETE FROM words WHERE rowid=?", rows)
    connection.executemany("DELETE FROM chunks WHERE id=?", rows)


def sweep(connection: Connection, model: str) -> None:
    """Vectors of texts that are gone, and, once `model` has all of its own, those of other models."""
    connection.execute("DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM chunks)")
    if model and not pending(connection, model, 1):
        connection.execute("DELETE FROM vectors WHERE model<>?", (model,))


def _packed(marks: Sequence[Mark]) -> str:
    rows = taint.stored(marks).get(taint.META)
    return msgspec.json.encode(rows).decode() if rows else ""


def _unpacked(text: str) -> tuple[Mark, ...]:
    if not text:
        return ()
    try:
        return taint.of({taint.META: msgspec.json.decode(text)})
    except msgspec.DecodeError:
        return (taint.UNREADABLE,)


def owners(connection: Connection) -> tuple[str, ...]:
    """Whose rows there are. As many steps as owners."""
    found: list[str] = []
    row = connection.execute("SELECT min(owner) FROM chunks").fetchone()
    while row is not None and row[0] is not None:
        found.append(row[0])
        row = connection.execute("SELECT min(owner) FROM chunks WHERE owner>?", (row[0],)).fetchone()
    return tuple(found)


@frozen
class Asked:
    """What is looked for: `match` as FTS5 reads it, among the rows of `owners` and `sources`."""

    match: str
    owners: tuple[str, ...]
    sources: tuple[str, ...]
    limit: int = KEYWORDS


def search(connection: Connection, asked: Asked) -> list[tuple[int, float]]:
    """Rows with their bm25 ranks, which are negative, the best first."""
    if not asked.match or not asked.owners or not asked.sources:
        return []
    return connection.execute(
        "SELECT chunks.id, words.rank FROM words CROSS JOIN chunks ON chunks.id=words.rowid "
        f"WHERE words MATCH ? AND chunks.owner IN ({_marks(asked.owners)}) AND chunks.source IN "
        f"({_marks(asked.sources)}) ORDER BY words.rank LIMIT ?",
        (asked.match, *asked.owners, *asked.sources, asked.limit),
    ).fetchall()


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))


def pick(connection: Connection, ids: Sequence[int], owned: Sequence[str]) -> dict[int, Row]:
    """Rows by their ids, those of `owned` alone."""
    found = connection.execute(
        "SELECT id, path, source, first, last, text, owner, session, created, marks FROM chunks "
        f"WHERE id IN ({_marks(ids)}) AND owner IN ({_marks(owned)})",
        (*ids, *owned),
    ).fetchall()
    made = (Row(*row) for row in found)
    return {row.id: row for row in made}


def pending(connection: Connection, model: str, limit: int) -> list[tuple[str, str]]:
    """Texts without a vector of `model`, with their hashes: the newest first."""
    rows = connection.execute(
        "SELECT hash, text FROM chunks WHERE hash<>'' AND NOT EXISTS "
        "(SELECT 1 FROM vectors WHERE vectors.model=? AND vectors.hash=chunks.hash) "
        "ORDER BY source='sessions', created DESC LIMIT ?",
        (model, limit),
    ).fetchall()
    return list({key: spoken(text) for key, text in rows}.items())


def store(connection: Connection, model: str, vectors: Mapping[str, bytes]) -> None:
    """Little-endian 32-bit floats, of length 1."""
    connection.executemany(
        "INSERT OR REPLACE INTO vectors (model, hash, vector) VALUES (?,?,?)",
        [(model, key, vector) for key, vector in vectors.items()],
    )
    told(connection, "vectors", str(int(told(connection, "vectors") or 0) + 1))


def told(connection: Connection, name: str, value: str | None = None) -> str:
    """A fact about the index; with `value` it is written."""
    if value is not None:
        connection.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?,?)", (name, value))
        return value
    row = connection.execute("SELECT value FROM facts WHERE name=?", (name,)).fetchone()
    return str(row[0]) if row else ""


@frozen
class Counts:
    """How much is indexed. `wanted`: texts that are worth a vector; `done`: those that have one of the model's."""

    files: dict[str, int]
    chunks: dict[str, int]
    bytes: dict[str, int]
    wanted: int
    done: int


def counts(connection: Connection, model: str) -> Counts:
    def by(sql: str) -> dict[str, int]:
        return {name: count or 0 for name, count in connection.execute(sql)}

    wanted = connection.execute("SELECT count(DISTINCT hash) FROM chunks WHERE hash<>''").fetchone()[0]
    done = connection.execute("SELECT count(*) FROM vectors WHERE model=?", (model,)).fetchone()[0]
    return Counts(
        by("SELECT source, count(*) FROM files GROUP BY source"),
        by("SELECT source, count(*) FROM chunks GROUP BY source"),
        by("SELECT source, sum(length(CAST(text AS BLOB))) FROM chunks GROUP BY source"),
        wanted,
        min(done, wanted),
    )
