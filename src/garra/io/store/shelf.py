"""Small values and what has been seen before: two tables that any part may use, each part in its own space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from garra.core.characters import keyed, plain
from garra.io.store.db import Connection, Database

_SET = "INSERT INTO shelf VALUES (?,?,?) ON CONFLICT DO UPDATE SET value=excluded.value"


class Shelf:
    """JSON values by name. A value that cannot be stored as JSON raises TypeError before anything is written; halves of
    characters in its texts become U+FFFD, and a name with such is kept by a digest of it.
    """

    def __init__(self, db: Database, space: str) -> None:
        self._db = db
        self._space = space

    async def get(self, key: str) -> Any:
        """The value, or `None`."""
        query = "SELECT value FROM shelf WHERE space=? AND key=?"
        row = await self._db.read(lambda c: c.execute(query, (self._space, keyed(key))).fetchone())
        return None if row is None else msgspec.json.decode(row[0])

    async def items(self) -> dict[str, Any]:
        query = "SELECT key, value FROM shelf WHERE space=? ORDER BY key"
        rows = await self._db.read(lambda c: c.execute(query, (self._space,)).fetchall())
        return {key: msgspec.json.decode(value) for key, value in rows}

    async def set(self, key: str, value: Any, *, durable: bool = False) -> None:
        await self.update({key: value}, durable=durable)

    async def update(self, values: Mapping[str, Any], *, durable: bool = False) -> None:
        """Set all of `values` or none."""
        rows = [(self._space, keyed(key), _written(value)) for key, value in values.items()]
        await self._db.write(lambda c: c.executemany(_SET, rows), durable=durable)

    async def remove(self, key: str, *, durable: bool = False) -> bool:
        """Whether there was such a value."""
        query = "DELETE FROM shelf WHERE space=? AND key=?"
        return await self._db.write(lambda c: c.execute(query, (self._space, keyed(key))).rowcount > 0, durable=durable)


def _written(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(plain(msgspec.to_builtins(value))).decode()


class Seen:
    """Names that must take effect only once."""

    def __init__(self, db: Database, space: str) -> None:
        self._db = db
        self._space = space

    async def first(self, key: str, *, now_ms: int, keep_ms: int) -> bool:
        """Whether `key` is new, or was last seen more than `keep_ms` before; from now on it is seen."""

        def work(connection: Connection) -> bool:
            connection.execute("DELETE FROM seen WHERE expires<=?", (now_ms,))
            row = (self._space, keyed(key), now_ms + keep_ms)
            return connection.execute("INSERT INTO seen VALUES (?,?,?) ON CONFLICT DO NOTHING", row).rowcount > 0

        return await self._db.write(work, durable=True)
