"""The durable outbox: an answer that was written is sent once, in the order of its chat, or its owner is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from garra.core.blots import NONE, Blots
from garra.core.errors import Conflict, NotFound
from garra.core.spool import (
    OUTBOX_MOVES,
    Again,
    Dead,
    Degrade,
    Doubt,
    Effect,
    Hold,
    OutboxMove,
    Split,
    Unload,
    fail,
    resumed,
)
from garra.domains.delivery import inbox
from garra.domains.delivery.draft import COLUMNS, Draft, Form, OutboxRow, discreet, divided, read
from garra.domains.delivery.store import FIELDS, Store, packed
from garra.domains.delivery.timeline import TOGETHER, passed
from garra.io.store.db import Connection
from garra.sdk.channel import SendFailed
from garra.sdk.ports import Clock

STRIDE = 1_000
"""Room between two places, for the parts of a message that has to be cut."""

Listener = Callable[[OutboxRow], None]
Rewrite = Callable[[OutboxRow, Split | Unload], Sequence[Draft]]
"""What is to be sent in the place of a message that was too long, or whose files were too large."""

_INSERT: Final = (
    "INSERT INTO outbox (place, key, channel, account, chat, thread, state, created, updated, inbox_id, body)"
    " VALUES (?,?,?,?,?,?,'pending',?,?,?,?) ON CONFLICT (key) DO NOTHING"
)
_HEADS: Final = (
    f"SELECT {COLUMNS} FROM outbox WHERE place IN ("
    "SELECT min(place) FROM outbox WHERE state IN ('pending','sending') AND channel=? AND account=?"
    " GROUP BY chat, thread) AND state='pending' ORDER BY due, place LIMIT ?"
)
_HALTED: Final = f"SELECT {COLUMNS} FROM outbox WHERE channel=? AND account=? AND state IN ('sending','unsure')"


class Outbox:
    """The kernel puts in, the couriers take out. Every change is committed when the call returns."""

    def __init__(self, db: Store, clock: Clock, blots: Callable[[], Blots] = lambda: NONE) -> None:
        self._db = db
        self._clock = clock
        self._blots = blots
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each row that was written or moved. The call ends it."""
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    async def put(
        self, messages: Sequence[Draft], *, inbox_id: str | None = None, also: Sequence[str] = (), why: str = "answered"
    ) -> list[OutboxRow]:
        """Write `messages` and finish the inbox row they answer (and `also`, when one run answered several): all or
        nothing, and on the disk when this returns. A key that is there already is left as it is. No secret that is
        known gets in.
        """
        now, blots = self._clock.now_ms(), self._blots()
        messages = [discreet(draft, blots) for draft in messages]
        answered = ((inbox_id,) if inbox_id else ()) + tuple(also)

        def work(connection: Connection) -> list[OutboxRow]:
            for draft in sorted(messages, key=lambda draft: draft.position):
                _insert(connection, draft, _last(connection) + STRIDE, now, inbox_id=inbox_id or "")
            if inbox_id and messages:
                passed(connection, now, also, "written", detail=f"in one answer with {inbox_id}")
            _finish(connection, answered, why, now)
            return [_found(connection, draft.key) for draft in messages]

        return self._told(await self._db.write(work, durable=True))

    async def heads(self, channel: str, account: str, limit: int = 64) -> list[OutboxRow]:
        """The next message of each chat and thread with none in hand, soonest due first."""
        query = (channel, account, limit)
        return await self._db.read(lambda connection: [read(row) for row in connection.execute(_HEADS, query)])

    async def claim(self, rows: Sequence[OutboxRow]) -> list[OutboxRow]:
        """Take them in hand, each to be sent at once: after a crash it counts as perhaps sent. Gives those it got."""
        now = self._clock.now_ms()

        def work(connection: Connection) -> list[OutboxRow]:
            return [_move(connection, "claim", row, now) for row in rows if _pending(connection, row)]

        return self._told(await self._db.write(work, durable=True))

    async def sent(self, row: OutboxRow, platform_id: str) -> OutboxRow:
        """The platform gave it `platform_id`."""
        return await self._change("confirm", row.key, platform_id=platform_id, reason="")

    async def failed(
        self, row: OutboxRow, fault: SendFailed, *, idempotent: bool = False, rewrite: Rewrite | None = None
    ) -> Effect:
        """It was not, or perhaps not, delivered. Gives back what follows, which is stored already."""
        now = self._clock.now_ms()
        effect = fail(row.sending(idempotent=idempotent), fault.fault, now, fault.retry_after_s)
        drafts = (rewrite or cut)(row, effect) if isinstance(effect, Split | Unload) else ()

        def work(connection: Connection) -> list[OutboxRow]:
            if drafts:
                return _replace(connection, row, drafts, now)
            return [_apply(connection, row, effect, now, message=fault.message)]

        self._told(await self._db.write(work))
        return effect

    async def put_back(self, row: OutboxRow, delay_s: float) -> None:
        """It was claimed and not sent after all: it waits `delay_s`, and no try was burned."""
        due = self._clock.now_ms() + round(delay_s * 1000)
        await self._change("release", row.key, due=due, reason="the platform wants a pause")

    async def recover(self, channel: str, account: str, *, idempotent: bool) -> list[OutboxRow]:
        """What a restart makes of messages that were in the middle of being sent. Gives those that are now unsure.

        A word to the owner is sent again: told twice is better than not at all.
        """
        now = self._clock.now_ms()

        def work(connection: Connection) -> list[OutboxRow]:
            halted = [read(row) for row in connection.execute(_HALTED, (channel, account))]
            moved = []
            for row in halted:
                again = idempotent or bool(row.draft.edits) or row.draft.purpose == "notice"
                state = resumed(row.state, idempotent=again)
                if state != row.state:
                    change: OutboxMove = (
                        "doubt" if state == "unsure" else "retry" if row.state == "unsure" else "release"
                    )
                    reason = "the program ended while it was being sent" if state == "unsure" else ""
                    moved.append(_move(connection, change, row, now, reason=reason))
            return moved

        rows = self._told(await self._db.write(work, durable=True))
        return [row for row in rows if row.state == "unsure"]

    async def hurry(self, channel: str, account: str) -> None:
        """The link is back: what waits after a failed try waits no longer."""
        query = "UPDATE outbox SET due=0 WHERE state='pending' AND channel=? AND account=? AND tries>0"
        await self._db.write(lambda connection: connection.execute(query, (channel, account)).rowcount)

    async def anew(self, row: OutboxRow) -> list[OutboxRow]:
        """The message that it was to change is not there: it is sent as one of its own."""
        now, fresh = self._clock.now_ms(), replace(row.draft, edits="")
        return self._told(await self._db.write(lambda connection: _replace(connection, row, [fresh], now)))

    async def retry(self, key: str) -> OutboxRow:
        """The owner wants it sent again, from its best form. Raises Conflict or NotFound."""
        return await self._change("retry", key, due=0, tries=0, stage=0, reason="")

    async def drop(self, key: str, by: str = "the owner") -> OutboxRow:
        """It is not to be sent any more. Raises Conflict or NotFound."""
        return await self._change("drop", key, reason=f"dropped by {by}")

    async def bury(self, key: str, reason: str) -> OutboxRow:
        return await self._change("bury", key, reason=reason)

    async def get(self, key: str) -> OutboxRow:
        """Raises NotFound."""
        return await self._db.read(lambda connection: _found(connection, key))

    async def beginning(self, lead: str, since_ms: int = 0) -> list[OutboxRow]:
        """The messages whose keys begin with `lead`, written since then, in order."""
        query = f"SELECT {COLUMNS} FROM outbox WHERE key >= ? AND key < ? AND created >= ? ORDER BY place"
        given = (lead, f"{lead}\U0010ffff", since_ms)
        return await self._db.read(lambda connection: [read(row) for row in connection.execute(query, given)])

    async def answers(self, inbox_id: str) -> list[OutboxRow]:
        """What was written in answer to an inbox row, or to others that its run took along, in order."""
        query = f"SELECT {COLUMNS} FROM outbox WHERE inbox_id=:id OR inbox_id IN ({TOGETHER}) ORDER BY place"
        return await self._db.read(lambda c: [read(row) for row in c.execute(query, {"id": inbox_id})])

    async def _change(self, change: OutboxMove, key: str, **values: Any) -> OutboxRow:
        now = self._clock.now_ms()
        row = await self._db.write(lambda c: _move(c, change, _found(c, key), now, **values))
        return self._told([row])[0]

    def _told(self, rows: list[OutboxRow]) -> list[OutboxRow]:
        for row in rows:
            for listener in tuple(self._listeners):
                listener(row)
        return rows


def cut(row: OutboxRow, effect: Split | Unload) -> Sequence[Draft]:
    """The plain answer to both: the text in halves, or a line for each file."""
    draft = row.draft
    if isinstance(effect, Unload):
        lines = [f"{file.name} is too large to be sent here ({file.size} bytes)." for file in draft.files]
        text = "\n\n".join(part for part in (draft.text, *lines) if part)
        return [replace(draft, forms=(Form("plain", text),), files=())]
    first, *others = divided(draft.text)
    parts = [replace(draft, forms=(Form("plain", first),))]
    for number, part in enumerate(others, start=2):
        parts.append(
            replace(draft, key=f"{draft.key}/{number}", forms=(Form("plain", part),), reply_to="", files=(), edits="")
        )
    return [*(replace(part, buttons=()) for part in parts[:-1]), replace(parts[-1], buttons=draft.buttons)]


def _insert(connection: Connection, draft: Draft, place: int, now: int, *, inbox_id: str) -> None:
    address = draft.address
    values = (place, draft.key, address.channel, address.account, address.chat, address.thread, now, now, inbox_id)
    if connection.execute(_INSERT, (*values, packed(draft))).rowcount:
        passed(connection, now, (draft.key,), "written", detail=draft.purpose)


def _last(connection: Connection) -> int:
    last: int = connection.execute("SELECT coalesce(max(place), 0) FROM outbox").fetchone()[0]
    return last // STRIDE * STRIDE


def _finish(connection: Connection, inbox_ids: Iterable[str], why: str, now: int) -> None:
    for inbox_id in inbox_ids:
        if inbox.found(connection, inbox_id).state != "dead":
            inbox.move(connection, "finish", inbox_id, now, why=why)


def _replace(connection: Connection, row: OutboxRow, drafts: Sequence[Draft], now: int) -> list[OutboxRow]:
    """The first takes the row's place, the others come right behind it."""
    connection.execute("UPDATE outbox SET body=? WHERE key=?", (packed(drafts[0]), row.key))
    keys = [row.key]
    for offset, draft in enumerate(drafts[1:], start=1):
        keys.append(_free(connection, draft.key))
        place = _behind(connection, row.place, offset)
        _insert(connection, replace(draft, key=keys[-1]), place, now, inbox_id=row.inbox_id)
    _move(connection, "release", row, now, stage=0, reason="")
    return [_found(connection, key) for key in keys]


def _free(connection: Connection, key: str) -> str:
    """`key`, or one like it that no message has: half a message may be cut again."""
    while connection.execute("SELECT 1 FROM outbox WHERE key=?", (key,)).fetchone():
        key += "+"
    return key


def _behind(connection: Connection, place: int, offset: int) -> int:
    """Move what stands right behind `place` one on, until there is room."""
    wanted, end = place + offset, place // STRIDE * STRIDE + STRIDE
    query = "SELECT place FROM outbox WHERE place>=? AND place<? ORDER BY place DESC"
    for (taken,) in connection.execute(query, (wanted, end)).fetchall():
        connection.execute("UPDATE outbox SET place=place+1 WHERE place=?", (taken,))
    return wanted


def _apply(connection: Connection, row: OutboxRow, effect: Effect, now: int, *, message: str) -> OutboxRow:
    match effect:
        case Again(at_ms, tries):
            return _move(connection, "release", row, now, due=at_ms, tries=tries, reason=message)
        case Degrade(stage):
            return _move(connection, "release", row, now, stage=stage, reason=message)
        case Doubt():
            return _move(connection, "doubt", row, now, reason=message)
        case Dead(reason):
            return _move(connection, "bury", row, now, reason=f"{reason}: {message}")
        case Hold() | Split() | Unload():
            return _move(connection, "release", row, now, reason=message)


_STATIONS: Final[dict[OutboxMove, str]] = {
    "claim": "sending",
    "confirm": "sent",
    "release": "later",
    "doubt": "unsure",
    "bury": "dead",
    "retry": "retried",
    "drop": "dropped",
}


def _move(connection: Connection, change: OutboxMove, row: OutboxRow, now: int, **values: Any) -> OutboxRow:
    """Make one move of the table, within a transaction. Raises Conflict for one that the state does not know."""
    state = OUTBOX_MOVES[change].get(row.state)
    if state is None:
        raise Conflict(f"message {row.key} is {row.state}: it cannot become {_STATIONS[change]}")
    columns = values | {"state": state, "updated": now}
    sets = ", ".join(f"{column}=?" for column in columns)
    connection.execute(f"UPDATE outbox SET {sets} WHERE key=?", (*columns.values(), row.key))
    detail = str(values.get("platform_id") or values.get("reason") or "")
    passed(connection, now, (row.key,), "degraded" if values.get("stage") else _STATIONS[change], detail=detail)
    return replace(row, **{FIELDS.get(column, column): value for column, value in columns.items()})


def _pending(connection: Connection, row: OutboxRow) -> bool:
    query = "SELECT 1 FROM outbox WHERE key=? AND state='pending'"
    return connection.execute(query, (row.key,)).fetchone() is not None


def _found(connection: Connection, key: str) -> OutboxRow:
    row = connection.execute(f"SELECT {COLUMNS} FROM outbox WHERE key=?", (key,)).fetchone()
    if row is None:
        raise NotFound(f"no such message: {key[:120]}")
    return read(row)
