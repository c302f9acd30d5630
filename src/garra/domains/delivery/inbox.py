"""The durable inbox: an event that was accepted is on the disk, once, until it is answered or explained."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from garra.core.access import REFUSALS
from garra.core.characters import mended
from garra.core.errors import Conflict, NotFound
from garra.core.spool import INBOX_MOVES, InboxMove, InboxState, Waiting, evicted, name
from garra.core.value import frozen
from garra.domains.delivery.storable import decoded, storable
from garra.domains.delivery.store import FIELDS, Store, packed
from garra.domains.delivery.timeline import passed
from garra.io.store.db import Connection
from garra.sdk.channel import Ignored, Inbound
from garra.sdk.ports import Clock

REMEMBERED = 5_000
REMEMBERED_MS = 20 * 60_000
"""How many events, and for how long, are known to be duplicates without a look at the disk."""

PENDING = 500
"""Events of one chat that may wait; beyond it the bot's own go first, then people's, oldest first."""


STRANGER: Final = "stranger"
"""Why a message waits, or has died, whose sender nobody let in when it came; a dead one says more behind it."""


@frozen
class Accepted:
    """`row_id` names the event from now on; `duplicate`: it was there before, and nothing follows."""

    row_id: str
    duplicate: bool


@frozen
class InboxRow:
    """One event. `seq` is the order of arrival; times in milliseconds since 1970; `why` it is done or dead."""

    id: str
    seq: int
    event: Inbound | Ignored
    state: InboxState
    received_at: int
    updated_at: int = 0
    due_at: int = 0
    tries: int = 0
    run_id: str = ""
    session_key: str = ""
    why: str = ""


Listener = Callable[[InboxRow], None]

COLUMNS: Final = "id, seq, body, state, received, updated, due, tries, run_id, session_key, why"
_INSERT: Final = (
    "INSERT INTO inbox (id, channel, account, chat, thread, event, event_id, own, state, received, updated, why, body)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING RETURNING seq"
)
SAME: Final = "SELECT id FROM inbox WHERE channel=? AND account=? AND chat=? AND event=? AND event_id=?"
_LONG: Final = "SELECT count(*) FROM inbox WHERE state='pending' AND channel=? AND account=? AND chat=?"
_QUEUE: Final = (
    "SELECT id, own, json_extract(body, '$.sender.id') FROM inbox"
    " WHERE state='pending' AND channel=? AND account=? AND chat=? ORDER BY seq"
)
Once = tuple[str, str, str, str, str]


class Inbox:
    """Channels put in, the kernel takes out. Every change is committed when the call returns."""

    def __init__(self, db: Store, clock: Clock, pending: int = PENDING) -> None:
        self._db = db
        self._clock = clock
        self._cap = pending
        self._seen: OrderedDict[Once, tuple[int, str]] = OrderedDict()
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each row that becomes pending, in order of arrival, and with each that dies.

        The call ends it.
        """
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    async def accept(self, event: Inbound | Ignored, bot: str = "", *, stranger: bool = False) -> Accepted:
        """Store `event`, whatever is in it. When this returns it survives a power cut, and the platform may be told.

        `bot` is who the account was when it heard it: another bot in its place counts its messages from one again.
        `stranger`: nobody lets its sender in, so that nothing is kept of its words if it dies.
        Raises Unavailable when it could not be stored; then the platform has to send it again.
        """
        stored = storable(event)
        once, now = _once(stored.event, mended(bot)), self._clock.now_ms()
        if (known := self._remembered(once, now)) is not None:
            return Accepted(known, duplicate=True)
        row = _row(stored.event, once, now, STRANGER if stranger else "")
        seq, row_id, lost = await self._db.write(lambda c: self._insert(c, row, once, stored.body), durable=True)
        self._remember(once, now, row_id)
        if seq is None:
            return Accepted(row_id, duplicate=True)
        if row.state == "pending" and row_id not in lost:
            self._tell(replace(row, seq=seq))
        for gone in await self.rows(lost):
            self._tell(gone)
        return Accepted(row_id, duplicate=False)

    async def claim(self, row_id: str) -> InboxRow:
        """The kernel takes it in hand. Raises Conflict when it is no longer pending."""
        return await self._move("claim", row_id)

    async def adopt(self, row_id: str, run_id: str, session_key: str) -> InboxRow:
        """A run has it: from now on a restart resumes that run, after a power cut too: what follows in the transcript
        is on the disk, and must not be said again by another run.
        """
        return await self._move("adopt", row_id, durable=True, run_id=run_id, session_key=session_key)

    async def done(self, row_id: str, why: str) -> InboxRow:
        """It needs nothing more (`silence`, `observed`, `command`, `access:…`); done already is fine."""
        return await self._move("finish", row_id, why=why)

    async def bury(self, row_id: str, reason: str) -> InboxRow:
        """It cannot be answered; its owner is told `reason`."""
        row = await self._move("bury", row_id, why=reason)
        self._tell(row)
        return row

    async def release(self, row_id: str, delay_s: float = 0.0) -> InboxRow:
        """Give it back, to be claimed again after `delay_s`; the try is counted."""
        row = await self._move("release", row_id, due=self._clock.now_ms() + round(delay_s * 1000))
        self._tell(row)
        return row

    async def retry(self, row_id: str) -> InboxRow:
        """The owner wants a dead one tried again. Raises Conflict for one that is not dead."""
        row = await self._move("retry", row_id, run_id="", why="", due=0)
        self._tell(row)
        return row

    async def drop(self, row_id: str) -> InboxRow:
        """The owner does not want it answered. Raises Conflict once a run has it."""
        return await self._move("drop", row_id, why="dropped by the owner")

    async def get(self, row_id: str) -> InboxRow:
        """Raises NotFound."""
        return await self._db.read(lambda connection: found(connection, row_id))

    async def rows(self, row_ids: Sequence[str]) -> list[InboxRow]:
        if not row_ids:
            return []
        marks = ",".join("?" * len(row_ids))
        query = f"SELECT {COLUMNS} FROM inbox WHERE id IN ({marks}) ORDER BY seq"
        return await self._db.read(lambda c: [read(row) for row in c.execute(query, tuple(row_ids))])

    async def pending(self) -> list[InboxRow]:
        """What a restart finds: all that is pending or adopted, oldest first; what was claimed is pending again."""
        now = self._clock.now_ms()

        def work(connection: Connection) -> list[InboxRow]:
            connection.execute("UPDATE inbox SET state='pending', updated=? WHERE state='claimed'", (now,))
            query = f"SELECT {COLUMNS} FROM inbox WHERE state IN ('pending','claimed','adopted') ORDER BY seq"
            return [read(row) for row in connection.execute(query)]

        return await self._db.write(work)

    def _insert(
        self, connection: Connection, row: InboxRow, once: Once, body: str
    ) -> tuple[int | None, str, list[str]]:
        address, event = row.event.address, row.event
        values = (row.id, *once[:3], address.thread if address else "", once[3], once[4], _own(event))
        stamps = (row.state, row.received_at, row.received_at, row.why, body)
        stored = connection.execute(_INSERT, values + stamps).fetchone()
        if stored is None:
            return None, str(connection.execute(SAME, once).fetchone()[0]), []
        passed(connection, row.received_at, (row.id,), _FIRST[row.state == "pending"], detail=row.why)
        return int(stored[0]), row.id, self._evict(connection, row, once)

    def _evict(self, connection: Connection, row: InboxRow, once: Once) -> list[str]:
        if connection.execute(_LONG, once[:3]).fetchone()[0] <= self._cap:
            return []
        rows = connection.execute(_QUEUE, once[:3])
        lost = evicted([Waiting(str(found), bool(own), str(sender)) for found, own, sender in rows], self._cap)
        for row_id in lost:
            move(connection, "bury", row_id, row.received_at, why=f"over {self._cap} messages of its chat were waiting")
        return list(lost)

    async def _move(self, change: InboxMove, row_id: str, *, durable: bool = False, **values: Any) -> InboxRow:
        now = self._clock.now_ms()
        return await self._db.write(lambda connection: move(connection, change, row_id, now, **values), durable=durable)

    def _tell(self, row: InboxRow) -> None:
        for listener in tuple(self._listeners):
            listener(row)

    def _remembered(self, once: Once, now: int) -> str | None:
        at, row_id = self._seen.get(once, (0, ""))
        return row_id if row_id and now - at < REMEMBERED_MS else None

    def _remember(self, once: Once, now: int, row_id: str) -> None:
        self._seen[once] = (now, row_id)
        self._seen.move_to_end(once)
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)


_FIRST: Final = {True: "received", False: "ignored"}

_STATIONS: Final[dict[InboxMove, str]] = {
    "adopt": "adopted",
    "finish": "done",
    "bury": "dead",
    "release": "released",
    "retry": "retried",
    "drop": "dropped",
}


def move(connection: Connection, change: InboxMove, row_id: str, now: int, **values: Any) -> InboxRow:
    """Make one move of the table, within a transaction. What is done stays done, without a word.

    Raises Conflict for a move that the row's state does not know, NotFound for no row.
    """
    row = found(connection, row_id)
    if change == "finish" and row.state == "done":
        return row
    state = INBOX_MOVES[change].get(row.state)
    if state is None:
        raise Conflict(f"message {row_id} is {row.state}: it cannot be {_DONE_BY[change]}")
    values = {column: mended(value) if isinstance(value, str) else value for column, value in values.items()}
    values |= {"state": state, "updated": now}
    if change == "release":
        values["tries"] = row.tries + 1
    if change == "adopt":
        values["why"] = ""
    if change == "bury" and row.why == STRANGER:
        values["why"] = f"{STRANGER}: {values['why']}"
    if _unheard(change, str(values.get("why", ""))):
        connection.execute("UPDATE inbox SET body=? WHERE id=?", (packed(_bare(row.event)), row_id))
    sets = ", ".join(f"{column}=?" for column in values)
    connection.execute(f"UPDATE inbox SET {sets} WHERE id=?", (*values.values(), row_id))
    if station := _STATIONS.get(change):
        detail = str(values.get("why", "") or values.get("run_id", ""))
        passed(connection, now, (row_id,), station, detail=detail)
    return replace(row, **{FIELDS.get(column, column): value for column, value in values.items()})


def _unheard(change: InboxMove, why: str) -> bool:
    """Whether this is the end of a message of somebody who was not let in."""
    return (change == "finish" and why in REFUSALS) or (change == "bury" and why.startswith(STRANGER))


def _bare(event: Inbound | Ignored) -> Inbound | Ignored:
    """That it came, when, and from whom: no word of it."""
    if isinstance(event, Ignored):
        return event
    return replace(event, text="", data="", reply_text="", media=(), raw=None)


_DONE_BY: Final[dict[InboxMove, str]] = {
    "claim": "claimed",
    "adopt": "given to a run",
    "finish": "finished",
    "bury": "given up",
    "release": "given back",
    "retry": "tried again",
    "drop": "dropped",
}


def found(connection: Connection, row_id: str) -> InboxRow:
    """Raises NotFound."""
    row = connection.execute(f"SELECT {COLUMNS} FROM inbox WHERE id=?", (row_id,)).fetchone()
    if row is None:
        raise NotFound(f"no such message: {row_id[:80]}")
    return read(row)


def read(row: Sequence[Any]) -> InboxRow:
    """A row of `COLUMNS`."""
    row_id, seq, body, *rest = row
    return InboxRow(row_id, seq, decoded(body), *rest)


def _once(event: Inbound | Ignored, bot: str) -> Once:
    """What makes an event the same one: where it was, which kind, who heard it, and the platform's id."""
    address = event.address
    kind = event.event if isinstance(event, Inbound) else "ignored"
    place = (address.channel, address.account, address.chat) if address else ("", "", "")
    return (*place, kind, f"{bot}/{event.id}" if bot else event.id)


def _row(event: Inbound | Ignored, once: Once, now: int, why: str) -> InboxRow:
    if isinstance(event, Ignored):
        return InboxRow(name(now, *once), 0, event, "done", now, now, why=event.reason)
    return InboxRow(name(now, *once), 0, event, "pending", now, now, why=why)


def _own(event: Inbound | Ignored) -> bool:
    return isinstance(event, Inbound) and (event.own or event.sender.is_bot)
