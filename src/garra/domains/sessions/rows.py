"""The registry's rows in the state database. Plain functions of a connection, run by `Database.read` and `write`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from garra.core.value import frozen
from garra.domains.sessions.session import Session, entry_from, entry_json
from garra.io.store.db import Connection

_PUT = """
    INSERT INTO sessions (key, session_id, agent_id, updated_at, label, archived, pinned, entry)
    VALUES (?,?,?,?,?,?,?,?)
    ON CONFLICT (key) DO UPDATE SET session_id=excluded.session_id, agent_id=excluded.agent_id,
    updated_at=excluded.updated_at, label=excluded.label, archived=excluded.archived, pinned=excluded.pinned,
    entry=excluded.entry"""
_COLUMNS = "key, agent_id, entry"
_NAMES = ("displayName", "derivedTitle", "lastMessagePreview", "subject", "category")
_EXTRACTS = "".join(f" || ' ' || coalesce(json_extract(entry, '$.{name}'), '')" for name in _NAMES)
_WORDS = f"(key || ' ' || session_id || ' ' || coalesce(label, ''){_EXTRACTS})"


@frozen
class Query:
    """Which sessions, newest first. `archived` `None` means both; `since` is milliseconds since 1970."""

    agent_id: str | None = None
    search: str = ""
    label: str | None = None
    archived: bool | None = False
    since: int = 0
    spawned_by: str | None = None
    limit: int = 100
    offset: int = 0


@frozen
class Page:
    """`total` counts all that match the query."""

    sessions: tuple[Session, ...]
    total: int
    limit: int
    offset: int

    @property
    def next_offset(self) -> int | None:
        end = self.offset + len(self.sessions)
        return end if end < self.total and self.sessions else None


def get(connection: Connection, key: str) -> Session | None:
    return _one(connection.execute(f"SELECT {_COLUMNS} FROM sessions WHERE key=?", (key,)).fetchone())


def by_id(connection: Connection, session_id: str) -> Session | None:
    query = f"SELECT {_COLUMNS} FROM sessions WHERE session_id=? LIMIT 1"
    return _one(connection.execute(query, (session_id,)).fetchone())


def every(connection: Connection, agent_id: str | None = None) -> list[Session]:
    where = "" if agent_id is None else "WHERE agent_id=?"
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions {where} ORDER BY updated_at DESC", () if agent_id is None else (agent_id,)
    )
    return [session for row in rows if (session := _one(row)) is not None]


def agents(connection: Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT DISTINCT agent_id FROM sessions ORDER BY agent_id")]


def mirror(connection: Connection, agent_id: str) -> list[tuple[str, str]]:
    """Key and entry text of each session of an agent."""
    query = "SELECT key, entry FROM sessions WHERE agent_id=? ORDER BY updated_at DESC"
    return connection.execute(query, (agent_id,)).fetchall()


def quoted(text: str) -> str:
    """`text` as JSON."""
    return msgspec.json.encode(text).decode()


def put(connection: Connection, sessions: Iterable[Session]) -> None:
    connection.executemany(_PUT, [_values(session) for session in sessions])


def labelled(connection: Connection, agent_id: str, label: str) -> str | None:
    """The key of the session that a label names."""
    query = "SELECT key FROM sessions WHERE agent_id=? AND label=?"
    row = connection.execute(query, (agent_id, label)).fetchone()
    return None if row is None else str(row[0])


def count(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sessions").fetchone()[0])


def remove(connection: Connection, key: str) -> None:
    connection.execute("DELETE FROM sessions WHERE key=?", (key,))


class Known:
    """Sessions by what is stored of them: one that did not change is not read anew. For one thread at a time."""

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._read: dict[str, tuple[str, Session]] = {}

    def session(self, key: str, agent_id: str, entry: str) -> Session:
        stored, session = self._read.get(key, ("", None))
        if session is None or stored != entry or session.agent_id != agent_id:
            session = entry_from(key, agent_id, msgspec.json.decode(entry))
            if len(self._read) >= self._most:
                self._read.clear()
            self._read[key] = (entry, session)
        return session


def page(connection: Connection, query: Query, known: Known) -> Page:
    where, values = _where(query)
    total = int(connection.execute(f"SELECT count(*) FROM sessions {where}", values).fetchone()[0])
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions {where} ORDER BY updated_at DESC, key LIMIT ? OFFSET ?",
        [*values, query.limit, query.offset],
    ).fetchall()
    found = tuple(known.session(*row) for row in rows)
    return Page(found, total, query.limit, query.offset)


def _where(query: Query) -> tuple[str, list[Any]]:
    tests: list[str] = []
    values: list[Any] = []
    for test, value in (
        ("agent_id=?", query.agent_id),
        ("label=?", query.label),
        ("archived=?", None if query.archived is None else int(query.archived)),
        ("updated_at>=?", query.since or None),
        ("json_extract(entry,'$.spawnedBy')=?", query.spawned_by),
    ):
        if value is not None:
            tests.append(test)
            values.append(value)
    for word in query.search.split():
        tests.append(f"{_WORDS} LIKE ? ESCAPE '\\'")
        values.append(_like(word))
    return (f"WHERE {' AND '.join(tests)}" if tests else ""), values


def _like(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _values(session: Session) -> tuple[Any, ...]:
    entry = msgspec.json.encode(entry_json(session)).decode()
    flags = (int(session.archived), int(session.pinned))
    return (session.key, session.session_id, session.agent_id, session.updated_at, session.label, *flags, entry)


def _one(row: Any) -> Session | None:
    return None if row is None else entry_from(row[0], row[1], msgspec.json.decode(row[2]))
