"""Both boxes as their owner sees them: lists, one message's story, retry and drop, and what is old goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from garra.core.access import REFUSALS
from garra.core.errors import NotFound, UserError
from garra.core.value import frozen
from garra.domains.delivery import draft, inbox
from garra.domains.delivery.draft import OutboxRow
from garra.domains.delivery.inbox import Inbox, InboxRow
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.store import Store
from garra.domains.delivery.timeline import Station, Timeline
from garra.io.store.db import Connection
from garra.sdk.channel import Address, Inbound

Row = InboxRow | OutboxRow
Direction = Literal["in", "out"]

KEEP_DAYS: Final = 30
"""How long what is finished is kept; a dead message, and an unsure one, stay three times as long."""

STRANGERS_MS: Final = 86_400_000
"""How long it is kept that somebody wrote who was not let in."""

SWEPT: Final = 5_000
"""Rows that one write removes at most."""


@frozen
class Query:
    """Which messages: an empty text is any. `limit` is the newest so many."""

    direction: Direction | None = None
    state: str = ""
    channel: str = ""
    account: str = ""
    chat: str = ""
    limit: int = 50


class Ledger:
    """Looks at the boxes and changes single messages for their owner."""

    def __init__(self, db: Store, inbox: Inbox, outbox: Outbox, timeline: Timeline) -> None:
        self._db = db
        self._inbox = inbox
        self._outbox = outbox
        self._timeline = timeline

    async def rows(self, query: Query) -> list[Row]:
        """Newest first."""
        found: list[Row] = []
        if query.direction != "out":
            found += await self._db.read(lambda c: [inbox.read(row) for row in _select(c, "inbox", query)])
        if query.direction != "in":
            found += await self._db.read(lambda c: [draft.read(row) for row in _select(c, "outbox", query)])
        return sorted(found, key=_time, reverse=True)[: query.limit]

    async def find(self, name: str) -> Row:
        """A message by its id or key, or by a beginning that only one has. Raises NotFound, UserError."""
        return await self._db.read(lambda connection: _find(connection, name))

    async def story(self, row: Row) -> list[Station]:
        """Its stations, those of its answers too."""
        return await self._timeline.timeline(_name(row))

    async def answers(self, row: Row) -> list[OutboxRow]:
        """The messages that answer an inbox row."""
        return await self._outbox.answers(row.id) if isinstance(row, InboxRow) else []

    async def retry(self, name: str) -> Row:
        """Try a dead or unsure one again. Raises Conflict, NotFound, UserError."""
        row = await self.find(name)
        if isinstance(row, InboxRow):
            return await self._inbox.retry(row.id)
        return await self._outbox.retry(row.key)

    async def drop(self, name: str) -> Row:
        """Give one up. Raises Conflict, NotFound, UserError."""
        row = await self.find(name)
        if isinstance(row, InboxRow):
            return await self._inbox.drop(row.id)
        return await self._outbox.drop(row.key)

    async def counts(self) -> dict[tuple[str, str], dict[str, int]]:
        """How many messages of each account are not finished: `in.pending`, `out.unsure` and so on."""
        query = (
            "SELECT channel, account, 'in.' || state, count(*) FROM inbox WHERE state<>'done' GROUP BY 1, 2, 3"
            " UNION ALL"
            " SELECT channel, account, 'out.' || state, count(*) FROM outbox WHERE state<>'sent' GROUP BY 1, 2, 3"
        )
        found: dict[tuple[str, str], dict[str, int]] = {}
        for channel, account, state, count in await self._db.read(lambda c: c.execute(query).fetchall()):
            found.setdefault((channel, account), {})[state] = count
        return found

    async def failed(self, since_ms: int) -> list[Row]:
        """What died or became unsure since then, in and out, oldest first."""

        def work(connection: Connection) -> list[Row]:
            found: list[Row] = []
            query = f"SELECT {inbox.COLUMNS} FROM inbox WHERE state='dead' AND updated>=?"
            found += [inbox.read(row) for row in connection.execute(query, (since_ms,))]
            query = f"SELECT {draft.COLUMNS} FROM outbox WHERE state IN ('dead','unsure') AND updated>=?"
            return found + [draft.read(row) for row in connection.execute(query, (since_ms,))]

        return sorted(await self._db.read(work), key=lambda row: row.updated_at)

    async def address(self, channel: str, account: str, chat: str) -> Address | None:
        """Where `chat` wrote from last, with its kind; None when it never did."""
        found = await self.heard(channel, account, chat)
        return found.address if found else None

    async def heard(self, channel: str, account: str, chat: str) -> Inbound | None:
        """The last message that `chat` wrote; None when it never did."""
        query = (
            f"SELECT {inbox.COLUMNS} FROM inbox WHERE channel=? AND account=? AND chat=? AND event='message'"
            " ORDER BY seq DESC LIMIT 1"
        )
        row = await self._db.read(lambda c: c.execute(query, (channel, account, chat)).fetchone())
        found = inbox.read(row).event if row else None
        return found if isinstance(found, Inbound) else None

    async def sweep(self, now_ms: int, days: int = KEEP_DAYS) -> int:
        """Remove what was finished more than `days` ago; how many messages went. Call it now and then."""
        gone = 0
        while (some := await self._db.write(lambda connection: _sweep(connection, now_ms, days))) > 0:
            gone += some
        return gone


def _name(row: Row) -> str:
    return row.id if isinstance(row, InboxRow) else row.key


def _time(row: Row) -> tuple[int, int]:
    return (row.received_at, row.seq) if isinstance(row, InboxRow) else (row.created_at, row.place)


def _select(connection: Connection, table: str, query: Query) -> Sequence[Sequence[Any]]:
    wanted = {"state": query.state, "channel": query.channel, "account": query.account, "chat": query.chat}
    asked = {column: value for column, value in wanted.items() if value}
    where = " AND ".join(f"{column}=?" for column in asked) or "1"
    columns, order = (inbox.COLUMNS, "seq") if table == "inbox" else (draft.COLUMNS, "created DESC, place")
    text = f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {order} DESC LIMIT ?"
    return connection.execute(text, (*asked.values(), query.limit)).fetchall()


def _find(connection: Connection, name: str) -> Row:
    names = [
        (str(found), kind)
        for kind, column in (("inbox", "id"), ("outbox", "key"))
        for (found,) in connection.execute(
            f"SELECT {column} FROM {kind} WHERE substr({column},1,?)=? ORDER BY {column} LIMIT 3", (len(name), name)
        )
    ]
    exact = [each for each in names if each[0] == name]
    chosen = exact or names
    if not name or not chosen:
        raise NotFound(f"no such message: {name[:120]}; garra messages list shows them")
    if len(chosen) > 1:
        raise UserError(f"{name} could be {', '.join(each for each, _ in chosen[:3])}: say more of it")
    found, kind = chosen[0]
    if kind == "inbox":
        return inbox.found(connection, found)
    return draft.read(connection.execute(f"SELECT {draft.COLUMNS} FROM outbox WHERE key=?", (found,)).fetchone())


_OF_STRANGERS: Final = (
    "SELECT id FROM inbox WHERE updated<:before AND state IN ('done','dead')"
    f" AND (why IN ({','.join(repr(why) for why in sorted(REFUSALS))}) OR why LIKE '{inbox.STRANGER}%') LIMIT :limit"
)


def _sweep(connection: Connection, now_ms: int, days: int) -> int:
    before = {"old": now_ms - days * 86_400_000, "older": now_ms - 3 * days * 86_400_000, "limit": SWEPT}
    strangers = {"before": now_ms - STRANGERS_MS, "limit": SWEPT}
    gone = _remove(connection, "inbox", "id", connection.execute(_OF_STRANGERS, strangers).fetchall())
    for table, column, good, bad in (("inbox", "id", "done", ("dead",)), ("outbox", "key", "sent", ("dead", "unsure"))):
        marks = ",".join(f"'{state}'" for state in bad)
        finished = (
            f"SELECT {column} FROM {table} WHERE (state='{good}' AND updated<:old)"
            f" OR (state IN ({marks}) AND updated<:older) ORDER BY updated LIMIT :limit"
        )
        names = connection.execute(finished, before).fetchall()
        gone += _remove(connection, table, column, names)
    return gone


def _remove(connection: Connection, table: str, column: str, names: Sequence[tuple[str]]) -> int:
    connection.executemany("DELETE FROM stations WHERE message=?", names)
    connection.executemany(f"DELETE FROM {table} WHERE {column}=?", names)
    return len(names)
