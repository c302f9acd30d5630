"""What searches found again and again, and what dreaming proposed: rows of the house's own store.

Plain functions of a connection, run by `Database.read` and `write`. Of a recalled line only the digest of its words is
kept; a proposal holds its lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import msgspec

from garra.core.dreaming import Recall
from garra.core.dreams import Line, line, theirs
from garra.core.forgetting import Person
from garra.core.value import frozen, replace
from garra.io.store.db import Connection

KEPT: Final = 4_000
"""Lines of one agent that are remembered as recalled."""
QUERIES: Final = 32
DAYS: Final = 32
LISTED: Final = 200


@frozen
class Found:
    """Lines that one search found, as (digest, path, line, how well it fitted), by a question's digest, on a day."""

    agent: str
    query: str
    day: str
    now: int
    lines: tuple[tuple[str, str, int, float], ...]


def note(connection: Connection, found: Found) -> None:
    """Count what a search found. A question that found a line before counts, but is no other question."""
    for digest, path, number, score in found.lines:
        old = _one(connection, found.agent, digest) or Recall(digest, path, number)
        queries = tuple(dict.fromkeys((*old.queries, found.query)))[-QUERIES:]
        days = tuple(dict.fromkeys((*old.days, found.day)))[-DAYS:]
        connection.execute(
            "INSERT INTO recalls (agent, digest, path, line, count, score, queries, days, first_at, last_at) "
            "VALUES (?,?,?,?,1,?,?,?,?,?) ON CONFLICT DO UPDATE SET path=excluded.path, line=excluded.line, "
            "count=count+1, score=score+excluded.score, queries=excluded.queries, days=excluded.days, "
            "last_at=excluded.last_at",
            (found.agent, digest, path, number, score, _list(queries), _list(days), found.now, found.now),
        )
    connection.execute(
        "DELETE FROM recalls WHERE agent=? AND digest NOT IN "
        "(SELECT digest FROM recalls WHERE agent=? ORDER BY last_at DESC LIMIT ?)",
        (found.agent, found.agent, KEPT),
    )


_COLUMNS: Final = "digest, path, line, count, score, queries, days, last_at, light, rem, phase_at"


def _one(connection: Connection, agent: str, digest: str) -> Recall | None:
    query = f"SELECT {_COLUMNS} FROM recalls WHERE agent=? AND digest=?"
    row = connection.execute(query, (agent, digest)).fetchone()
    return None if row is None else _recall(row)


def every(connection: Connection, agent: str) -> dict[str, Recall]:
    """All of an agent's, by their digests."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM recalls WHERE agent=?", (agent,)).fetchall()
    return {row[0]: _recall(row) for row in rows}


def _recall(row: Sequence[Any]) -> Recall:
    digest, path, line, count, score, queries, days, last, light, rem, phase = row
    asked, on = (tuple(msgspec.json.decode(text, type=list[str])) for text in (queries, days))
    return Recall(digest, path, line, count, score, asked, on, last, light, rem, phase)


def _list(values: Iterable[str]) -> str:
    return msgspec.json.encode(list(values)).decode()


def met(connection: Connection, agent: str, phases: Mapping[str, Iterable[str]], now: int) -> None:
    """`phases` name, for `light` and `rem`, the digests that the phase met."""
    for name, digests in phases.items():
        column = {"light": "light", "rem": "rem"}[name]
        connection.executemany(
            "INSERT INTO recalls (agent, digest, path, line, count, score, queries, days, first_at, last_at, "
            f"{column}, phase_at) VALUES (?,?,'',0,0,0,'[]','[]',?,0,1,?) ON CONFLICT DO UPDATE SET "
            f"{column}={column}+1, phase_at=excluded.phase_at",
            [(agent, digest, now, now) for digest in digests],
        )


@frozen
class Dream:
    """One proposal. Times in milliseconds since 1970; `by` is who decided, `auto` for the setting."""

    id: str
    agent: str
    at: int
    state: str
    outside: bool
    lines: tuple[Line, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)
    decided_at: int = 0
    by: str = ""

    @property
    def json(self) -> dict[str, Any]:
        told = {"decidedAt": self.decided_at, "decidedBy": self.by} if self.decided_at else {}
        return {
            "id": self.id, "agentId": self.agent, "at": self.at, "state": self.state, "outside": self.outside,
            "lines": [each.json for each in self.lines], **self.notes, **told,
        }  # fmt: skip


def put(connection: Connection, dream: Dream) -> None:
    """Store a proposal, or what became of it."""
    body = {"lines": [each.json for each in dream.lines], "notes": dict(dream.notes)}
    connection.execute(
        "INSERT OR REPLACE INTO dreams (id, agent, at, state, outside, body, decided_at, decided_by) "
        "VALUES (?,?,?,?,?,?,?,?)",
        (
            dream.id, dream.agent, dream.at, dream.state, int(dream.outside), msgspec.json.encode(body).decode(),
            dream.decided_at, dream.by,
        ),
    )  # fmt: skip


def dreams(connection: Connection, agent: str, state: str = "") -> tuple[Dream, ...]:
    """An agent's, the newest first; those in one state where it is named."""
    more, values = (" AND state=?", (agent, state)) if state else ("", (agent,))
    rows = connection.execute(f"SELECT * FROM dreams WHERE agent=?{more} ORDER BY at DESC LIMIT {LISTED}", values)
    return tuple(_dream(row) for row in rows.fetchall())


def dream(connection: Connection, agent: str, id_: str) -> Dream | None:
    """By its id, or by the beginning of it where that is one's only."""
    query = "SELECT * FROM dreams WHERE agent=? AND substr(id,1,?)=? ORDER BY id LIMIT 2"
    rows = connection.execute(query, (agent, len(id_), id_)).fetchall()
    exact = [row for row in rows if row[0] == id_] or (rows if len(rows) == 1 else [])
    return _dream(exact[0]) if exact else None


def _dream(row: Sequence[Any]) -> Dream:
    body = msgspec.json.decode(row[5])
    lines = tuple(line(each) for each in body["lines"])
    return Dream(row[0], row[1], row[2], row[3], bool(row[4]), lines, body["notes"], row[6], row[7])


def forgotten(connection: Connection, who: Person, *, dry: bool) -> int:
    """Take a person's words out of all proposals; how many lines there were."""
    gone = 0
    for row in connection.execute("SELECT * FROM dreams").fetchall():
        found = _dream(row)
        kept = tuple(each for each in found.lines if not theirs(each.owner, who))
        if len(kept) == len(found.lines):
            continue
        gone += len(found.lines) - len(kept)
        if not dry and kept:
            put(connection, replace(found, lines=kept))
        elif not dry:
            connection.execute("DELETE FROM dreams WHERE id=?", (found.id,))
    return gone
