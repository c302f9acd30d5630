"""Sub-agents on the disk: each as it stands, from before it begins until long after its parent was told."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from garra.core.characters import plain
from garra.core.lineage import Child
from garra.io.store.db import Connection, Database

KEPT = 2_000
"""So many whose parents were told are remembered, the newest; a session whose record is gone has no tool."""

_BODY = msgspec.json.Decoder(Child)
_PUT = (
    "INSERT INTO subagents (run_id, session_key, parent_key, state, created, updated, body) VALUES (?,?,?,?,?,?,?)"
    " ON CONFLICT (run_id) DO UPDATE SET state=excluded.state, updated=excluded.updated, body=excluded.body"
)
_OLD = (
    "DELETE FROM subagents WHERE state='told' AND run_id NOT IN"
    " (SELECT run_id FROM subagents WHERE state='told' ORDER BY created DESC LIMIT ?)"
)


class Records:
    """The table of sub-agents. Everything raises Unavailable when the store refuses."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(self, child: Child, now_ms: int) -> None:
        """It is on the disk when this returns, after a power cut too."""
        row = (child.run_id, child.key, child.home.key, child.state, child.created_at, now_ms, _written(child))
        await self._db.write(lambda c: c.execute(_PUT, row), durable=True)

    async def load(self) -> list[Child]:
        """All that are remembered, oldest first."""

        def work(connection: Connection) -> list[str]:
            connection.execute(_OLD, (KEPT,))
            return [row[0] for row in connection.execute("SELECT body FROM subagents ORDER BY created, rowid")]

        return [_BODY.decode(body) for body in await self._db.write(work)]

    async def remove(self, run_ids: Collection[str]) -> None:
        rows = [(run_id,) for run_id in run_ids]
        await self._db.write(lambda c: c.executemany("DELETE FROM subagents WHERE run_id=?", rows))


def _written(child: Child) -> str:
    try:
        return msgspec.json.encode(child).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(plain(msgspec.to_builtins(child))).decode()
