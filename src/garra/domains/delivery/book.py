"""Messages that a run has from the first moment, so that no pump carries them: in, their stations, their ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from garra.core.spool import name
from garra.core.value import frozen
from garra.domains.delivery.inbox import SAME, move
from garra.domains.delivery.store import Store, packed
from garra.domains.delivery.timeline import passed
from garra.io.store.db import Connection
from garra.sdk.channel import Inbound
from garra.sdk.ports import Clock


@frozen
class Passed:
    """A station that was passed `at`, in milliseconds since 1970; `detail` is one line without secrets."""

    at: int
    station: str
    detail: str = ""


_ENTER: Final = (
    "INSERT INTO inbox (id, channel, account, chat, thread, event, event_id, received, updated, run_id, session_key,"
    " body, own, state, why) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,0,'adopted','') ON CONFLICT DO NOTHING RETURNING seq"
)


class Book:
    """Writes them down. Raises Unavailable when the disk refuses."""

    def __init__(self, db: Store, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def now(self) -> int:
        return self._clock.now_ms()

    async def enter(self, event: Inbound, run_id: str, session_key: str) -> str:
        """Store `event`, which its run has already; the row's id, the same for the same event, once it is on disk.

        Raises Unavailable.
        """
        place, now = event.address, self._clock.now_ms()
        once = (place.channel, place.account, place.chat, event.event, event.id)
        row = name(now, *once)
        values = (row, *once[:3], place.thread, *once[3:], now, now, run_id, session_key, packed(event))

        def work(connection: Connection) -> str:
            if connection.execute(_ENTER, values).fetchone() is None:
                return str(connection.execute(SAME, once).fetchone()[0])
            passed(connection, now, (row,), "received")
            passed(connection, now, (row,), "adopted", detail=run_id)
            return row

        return await self._db.write(work, durable=True)

    async def note(self, rows: Sequence[str], stations: Sequence[Passed]) -> None:
        await self._db.write(lambda connection: _note(connection, rows, stations))

    async def finish(self, rows: Sequence[str], stations: Sequence[Passed], why: str) -> None:
        """They need nothing more; done already is fine."""
        now = self._clock.now_ms()

        def work(connection: Connection) -> None:
            _note(connection, rows, stations)
            for row in rows:
                move(connection, "finish", row, now, why=why)

        await self._db.write(work)


def _note(connection: Connection, rows: Sequence[str], stations: Sequence[Passed]) -> None:
    for each in stations:
        passed(connection, each.at, rows, each.station, detail=each.detail)
