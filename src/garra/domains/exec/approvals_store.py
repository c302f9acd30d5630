"""Questions on the disk: those that wait, and those that were answered in the last thirty days."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from garra.core.approvals import Approval
from garra.core.characters import plain
from garra.io.store.db import Connection, Database

KEPT_MS = 30 * 24 * 3_600_000
"""How long an answered question is kept."""
KEPT = 5_000
"""How many of them at most."""

_BODY = msgspec.json.Decoder(Approval)
_PUT = (
    "INSERT INTO approvals (id, phase, used, asked, ended, expires, body) VALUES (?,?,?,?,?,?,?) ON CONFLICT (id)"
    " DO UPDATE SET phase=excluded.phase, used=excluded.used, ended=excluded.ended, body=excluded.body"
)
_OPEN = "('registering', 'pending')"


class Docket:
    """The table of questions."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(self, approval: Approval) -> None:
        """It is on the disk when this returns."""
        row = (
            approval.id, approval.phase, int(approval.used), approval.asked_at, approval.ended_at, approval.expires_at,
            _written(approval),
        )  # fmt: skip
        await self._db.write(lambda c: c.execute(_PUT, row), durable=True)

    async def get(self, name: str) -> Approval | None:
        query = "SELECT body FROM approvals WHERE id=?"
        row = await self._db.read(lambda c: c.execute(query, (name,)).fetchone())
        return None if row is None else _BODY.decode(row[0])

    async def beginning(self, lead: str, limit: int = 2) -> list[Approval]:
        """Those whose id begins with `lead`."""
        query = "SELECT body FROM approvals WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
        return await self._read(query, (lead, f"{lead}\U0010ffff", limit))

    async def live(self, now_ms: int) -> list[Approval]:
        """Those that wait for an answer, and those whose answer nobody has acted upon, the oldest first."""
        query = f"SELECT body FROM approvals WHERE used=0 AND (expires>? OR phase IN {_OPEN}) ORDER BY asked"
        return await self._read(query, (now_ms,))

    async def ended(self, limit: int, before: tuple[int, str] | None = None) -> list[Approval]:
        """The answered ones, newest first; `before` is (ended, id) of the last of the page before."""
        query = f"SELECT body FROM approvals WHERE phase NOT IN {_OPEN} AND (ended, id) < (?, ?)"
        end = before or (1 << 62, "")
        return await self._read(f"{query} ORDER BY ended DESC, id DESC LIMIT ?", (*end, limit))

    async def sweep(self, now_ms: int) -> None:
        """Forget what is old."""

        def work(connection: Connection) -> None:
            old = f"DELETE FROM approvals WHERE phase NOT IN {_OPEN} AND "
            connection.execute(f"{old} ended<?", (now_ms - KEPT_MS,))
            newest = f"SELECT id FROM approvals WHERE phase NOT IN {_OPEN} ORDER BY ended DESC LIMIT {KEPT}"
            connection.execute(f"{old} id NOT IN ({newest})")

        await self._db.write(work)

    async def _read(self, query: str, values: Sequence[Any]) -> list[Approval]:
        rows = await self._db.read(lambda c: c.execute(query, values).fetchall())
        return [_BODY.decode(row[0]) for row in rows]


def _written(approval: Approval) -> str:
    try:
        return msgspec.json.encode(approval).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(plain(msgspec.to_builtins(approval))).decode()
