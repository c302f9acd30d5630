"""The stations a message passed on its way, and what each of them says to its owner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from garra.core.characters import mended
from garra.core.value import frozen
from garra.domains.delivery.store import Store
from garra.io.store.db import Connection
from garra.sdk.ports import Clock

DETAIL = 500
"""Characters of a station's detail that are kept."""

WORDS: Final = {
    "received": "stored on disk",
    "ignored": "recorded; nothing follows from it",
    "admitted": "its sender may write",
    "refused": "its sender may not write",
    "routed": "went to its conversation",
    "heard": "its recording was turned into words",
    "unheard": "its recording was not turned into words",
    "queued": "waits for its turn",
    "adopted": "a run took it",
    "model": "the model was asked",
    "tool": "a tool ran",
    "answered": "its run ended",
    "written": "an answer was stored on disk, to be sent",
    "sending": "handed to the platform",
    "sent": "the platform confirmed it by its own id",
    "later": "did not go through; it is tried again",
    "degraded": "the platform refused this form; a plainer one is tried",
    "unsure": "it may have arrived: the platform never said; it is not sent again by itself",
    "held": "waits: the account is not connected",
    "dead": "will not arrive",
    "released": "given back, to be taken up again",
    "retried": "its owner had it tried again",
    "dropped": "its owner dropped it",
    "done": "finished",
}
"""Every station, in words. Others may be noted; they are shown by their name."""


@frozen
class Station:
    """`at` in milliseconds since 1970. `message` is the inbox row's id, or the key of an answer."""

    at: int
    message: str
    station: str
    detail: str = ""

    @property
    def words(self) -> str:
        return WORDS.get(self.station, self.station)


_PASS = "INSERT INTO stations (message, at, station, detail) VALUES (?,?,?,?)"
TOGETHER: Final = (
    "SELECT other.id FROM inbox AS row JOIN inbox AS other ON other.run_id=row.run_id"
    " WHERE row.id=:id AND row.run_id<>''"
)
"""The inbox rows that one run answered with `:id`."""

_OF = (
    "SELECT at, message, station, detail FROM stations WHERE message=:id"
    f" OR message IN (SELECT key FROM outbox WHERE inbox_id=:id OR inbox_id IN ({TOGETHER}))"
    " ORDER BY at, seq LIMIT :limit"
)


def passed(connection: Connection, at_ms: int, messages: Iterable[str], station: str, *, detail: str = "") -> None:
    """Note, within a transaction, that these messages passed a station."""
    told = mended(detail[:DETAIL])
    connection.executemany(_PASS, [(message, at_ms, station, told) for message in messages])


class Timeline:
    """The story of each message, in the order it happened."""

    def __init__(self, db: Store, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def note(self, message: str, station: str, detail: str = "") -> None:
        """`message` is an inbox row's id or an outbox key; `detail` is one line without secrets."""
        await self.note_all((message,), station, detail)

    async def note_all(self, messages: Iterable[str], station: str, detail: str = "") -> None:
        now, named = self._clock.now_ms(), tuple(messages)
        await self._db.write(lambda connection: passed(connection, now, named, station, detail=detail))

    async def timeline(self, row_id: str, limit: int = 500) -> list[Station]:
        """All stations of the inbox row `row_id` and of its answers; or of one outbox key."""
        query = {"id": row_id, "limit": limit}
        rows = await self._db.read(lambda connection: connection.execute(_OF, query).fetchall())
        return [Station(*row) for row in rows]
