"""What model calls cost: a row for each, the sum of each day, and how much of an account is used right now.

A call is noted at once in memory and written with whatever else is committed next: no turn waits for it. What a crash
takes with it are the calls of the last moment.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

from garra.core.characters import plain
from garra.core.messages import Usage
from garra.core.spending import Account, Payer, Scope, Used, used
from garra.core.value import frozen, record
from garra.io.store.db import Connection, Database
from garra.io.store.shelf import Shelf
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

KEPT_DAYS: Final = 90
"""How long single calls are kept; the sums of days stay."""
FRESH_S: Final = 60.0
"""After so long an account is counted anew, for other processes spend too."""
ACCOUNTS: Final = 4_096
DAY_MS: Final = 86_400_000
QUARTER_MS: Final = 900_000
"""No time zone is off by less than a quarter of an hour."""
UNKNOWN: Final = "unknown"
"""The sender of what was said before anybody counted."""

COLUMNS: Final = ("session", "sender", "agent", "job", "provider", "model")
"""By what the sums of days can be told apart."""
_CALL: Final = (
    "INSERT INTO usage_calls (at, run, root, session, sender, agent, job, provider, model, input, output, cache_read,"
    " cache_write, cost, failed, tools) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_DAY: Final = (
    "INSERT INTO usage_days VALUES (?,?,?,?,?,?,?,1,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET calls=calls+1,"
    " input=input+excluded.input, output=output+excluded.output, cache_read=cache_read+excluded.cache_read,"
    " cache_write=cache_write+excluded.cache_write, cost=cost+excluded.cost, unpriced=unpriced+excluded.unpriced,"
    " failed=failed+excluded.failed"
)
_SUMS: Final = (
    "sum(calls), sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost), sum(unpriced), sum(failed)"
)
_DETAIL: Final = (
    "count(*), sum(input), sum(output), sum(cache_read), sum(cache_write), total(cost), sum(cost IS NULL), sum(failed)"
)
_OF: Final[Mapping[Scope, str]] = {"session": "session", "sender": "sender", "agent": "agent", "job": "job"}


@frozen
class Spent:
    """One call to a model. `priced` is false where nobody knows its price; `tools` are those its answer asked for."""

    at_ms: int
    payer: Payer
    provider: str
    model: str
    usage: Usage
    priced: bool = True
    failed: bool = False
    tools: tuple[str, ...] = ()


@frozen
class Sum:
    """What some calls came to. `of` has the value of each column that was asked for."""

    of: Mapping[str, str]
    calls: int
    usage: Usage
    unpriced: int = 0
    failed: int = 0

    def __add__(self, other: Sum) -> Sum:
        return Sum(
            self.of, self.calls + other.calls, self.usage + other.usage, self.unpriced + other.unpriced,
            self.failed + other.failed,
        )  # fmt: skip


@record
class _Count:
    """How much of an account is used, and when that was last read."""

    used: Used = field(default_factory=Used)
    read_at: float = 0.0


class Ledger:
    """`load` first. `zone` is that of the owner's days; None is the machine's."""

    def __init__(self, db: Database, clock: Clock, zone: Callable[[], tzinfo | None]) -> None:
        self._db, self._clock, self._zone = db, clock, zone
        self._shelf, self._words = Shelf(db, "usage"), Shelf(db, "budget-told")
        self._counts: OrderedDict[Account, _Count] = OrderedDict()
        self._waiting: deque[Spent] = deque()
        self._told: set[str] = set()
        self.since_ms = 0
        self.whole = False
        """Whether what is older than the ledger has been counted, too."""

    async def load(self) -> None:
        """Know since when calls are counted, and what was told."""
        known = await self._shelf.get("since")
        self.since_ms = known if isinstance(known, int) else self._clock.now_ms()
        if known is None:
            await self._shelf.set("since", self.since_ms)
        self._told = set(await self._words.items())

    def day(self, at_ms: int) -> str:
        return datetime.fromtimestamp(at_ms / 1000, self._zone()).date().isoformat()

    # ---- counting

    def note(self, spent: Spent) -> None:
        """A call ended. Never raises for the store's faults."""
        if self._counts:
            self._count(spent)
        self._waiting.append(spent)
        if len(self._waiting) == 1:
            self._db.post(self._write, _settled)

    def _count(self, spent: Spent) -> None:
        more = used(spent.usage, priced=spent.priced)
        for account in accounts(spent.payer, self.day(spent.at_ms)):
            if (count := self._counts.get(account)) is not None:
                count.used = count.used + more

    def _write(self, connection: Connection) -> None:
        """In the writer's thread: all that waits."""
        rows: list[Spent] = []
        while self._waiting:
            rows.append(self._waiting.popleft())
        self.put(connection, rows)

    def put(self, connection: Connection, rows: Sequence[Spent]) -> None:
        connection.executemany(_CALL, [_call(row) for row in rows])
        connection.executemany(_DAY, [_day(row, self.day(row.at_ms)) for row in rows])

    async def used(self, wanted: Sequence[Account]) -> list[Used]:
        """How much of each is used. Raises what the store raises, where it has to be asked."""
        old = self._clock.monotonic() - FRESH_S
        known = {each: found for each in wanted if (found := self._counts.get(each)) is not None}
        missing = [each for each in wanted if each not in known or known[each].read_at < old]
        if missing:
            known |= await self._read(missing)
        return [known[each].used for each in wanted]

    async def _read(self, wanted: Sequence[Account]) -> dict[Account, _Count]:
        """What is noted from here on is added to what the writer finds, who comes to it behind all noted before."""
        now = self._clock.monotonic()
        nothing = _Count()
        base = {each: self._counts.get(each, nothing).used for each in wanted}
        fresh = {each: _Count(base[each], now) for each in wanted}
        self._counts.update(fresh)
        while len(self._counts) > ACCOUNTS:
            self._counts.popitem(last=False)
        try:
            found = await self._db.write(lambda c: [_used(c, each) for each in wanted])
        except BaseException:
            for each in wanted:
                self._counts.pop(each, None)
            raise
        for each, stored in zip(wanted, found, strict=True):
            count = fresh[each]
            count.used = stored + count.used - base[each]
        return fresh

    # ---- what was told

    @property
    def told(self) -> Collection[str]:
        return self._told

    async def tell(self, names: Sequence[str]) -> bool:
        """These count as told from now on; False where they were before."""
        fresh = [name for name in names if name not in self._told]
        self._told.update(fresh)
        if fresh:
            await self._words.update({name: self._clock.now_ms() for name in fresh})
        return bool(fresh)

    # ---- looking back

    async def sums(self, by: Sequence[str], first: str, last: str, **where: str) -> list[Sum]:
        """The days from `first` to `last` of the owner's, by columns of the table (`day` among them), most first."""
        columns = ", ".join(by) or "''"
        limits = "".join(f" AND {name}=?" for name in where)
        query = f"SELECT {_SUMS}, {columns} FROM usage_days WHERE day BETWEEN ? AND ?{limits} GROUP BY {columns}"
        values = (first, last, *where.values())
        rows = await self._db.read(lambda c: c.execute(query, values).fetchall())
        found = [_sum(row, by) for row in rows if row[0]]
        return sorted(found, key=lambda each: (each.usage.cost, each.usage.total), reverse=True)

    async def quarters(self, first_ms: int, last_ms: int) -> list[tuple[int, Sum]]:
        """Single calls between two moments, by quarter of an hour, session, provider and model."""
        by = ("session", "provider", "model")
        query = (
            f"SELECT {_DETAIL}, session, provider, model, at/{QUARTER_MS} FROM usage_calls WHERE at BETWEEN ? AND ?"
            f" GROUP BY session, provider, model, at/{QUARTER_MS}"
        )
        rows = await self._db.read(lambda c: c.execute(query, (first_ms, last_ms)).fetchall())
        return [(row[-1] * QUARTER_MS, _sum(row[:-1], by)) for row in rows]

    async def tools(self, first_ms: int, last_ms: int, session: str = "") -> tuple[Counter[str], int]:
        """How often each tool was asked for, and in how many runs anything was."""
        only = " AND session=?" if session else ""
        values = (first_ms, last_ms, session) if session else (first_ms, last_ms)
        where = f"FROM usage_calls WHERE at BETWEEN ? AND ?{only}"

        def read(c: Connection) -> tuple[list[Any], int]:
            named = c.execute(f"SELECT tools, count(*) {where} AND tools!='' GROUP BY tools", values).fetchall()
            return named, c.execute(f"SELECT count(DISTINCT nullif(run, '')) {where}", values).fetchone()[0]

        rows, runs = await self._db.read(read)
        found: Counter[str] = Counter()
        for names, times in rows:
            for name in names.split():
                found[name] += times
        return found, runs

    async def oldest_ms(self) -> int | None:
        """The oldest call that is kept as a row."""
        row = await self._db.read(lambda c: c.execute("SELECT min(at) FROM usage_calls").fetchone())
        return None if row[0] is None else int(row[0])

    # ---- what was there before, and what is old

    async def taken(self) -> Collection[str]:
        """The conversations whose older words were counted."""
        return set(await Shelf(self._db, "usage-taken").items())

    async def take(self, session_id: str, rows: Sequence[Spent]) -> None:
        """Count what a conversation says of calls before anybody counted, once."""

        def work(connection: Connection) -> None:
            mark = "INSERT INTO shelf VALUES ('usage-taken',?,'1') ON CONFLICT DO NOTHING"
            if connection.execute(mark, (session_id,)).rowcount:
                self.put(connection, rows)

        await self._db.write(work)
        self._counts.clear()

    async def sweep(self) -> None:
        """Forget single calls of long ago, by whole days, and words about budgets that are over."""
        now = self._clock.now_ms()
        first = datetime.fromtimestamp(now / 1000, self._zone()).replace(hour=0, minute=0, second=0, microsecond=0)
        cut = round((first - timedelta(days=KEPT_DAYS)).timestamp() * 1000)
        await self._db.write(lambda c: c.execute("DELETE FROM usage_calls WHERE at<?", (cut,)))
        for name, at in (await self._words.items()).items():
            kept_days = 7 if name.startswith("run\x1f") else 400
            if isinstance(at, int) and at < now - kept_days * DAY_MS:
                self._told.discard(name)
                await self._words.remove(name)


def accounts(payer: Payer, day: str) -> list[Account]:
    """Every account that a call of this payer on this day may count for."""
    owners: tuple[tuple[Scope, str], ...] = (
        ("session", payer.session), ("sender", payer.sender), ("agent", payer.agent), ("job", payer.job),
    )  # fmt: skip
    found = [
        Account("run", payer.root, "run", payer.root),
        Account("day", "", "day", day),
        Account("month", "", "month", day[:7]),
    ]
    for scope, id_ in owners:
        if id_ or scope == "sender":
            found += [Account(scope, id_, "day", day), Account(scope, id_, "month", day[:7])]
            found.append(Account(scope, id_, "total", ""))
    return found


def _settled(error: BaseException | None) -> None:
    if error is not None:
        log.warning("what model calls cost could not be written: %s", error)


def _call(spent: Spent) -> tuple[object, ...]:
    who, usage = spent.payer, spent.usage
    return (
        spent.at_ms, who.run, who.root, *_who(spent), usage.input, usage.output, usage.cache_read, usage.cache_write,
        usage.cost if spent.priced else None, int(spent.failed), plain(" ".join(spent.tools)),
    )  # fmt: skip


def _day(spent: Spent, day: str) -> tuple[object, ...]:
    usage = spent.usage
    return (
        day, *_who(spent), usage.input, usage.output, usage.cache_read, usage.cache_write,
        usage.cost if spent.priced else 0.0, int(not spent.priced), int(spent.failed),
    )  # fmt: skip


def _who(spent: Spent) -> tuple[str, ...]:
    who = spent.payer
    return (who.session, plain(who.sender), who.agent, who.job, spent.provider, plain(spent.model))


def _used(connection: Connection, account: Account) -> Used:
    """As the store has it."""
    if account.scope == "run":
        tokens = "sum(input+output+cache_read+cache_write), total(cost), sum(cost IS NULL)"
        row = connection.execute(f"SELECT {tokens} FROM usage_calls WHERE root=?", (account.id,)).fetchone()
    else:
        column = _OF.get(account.scope)
        where, values = [], []
        if column is not None:
            where, values = [f"{column}=?"], [plain(account.id)]
        if account.period:
            where += ["day BETWEEN ? AND ?"]
            values += [account.period, f"{account.period}-99" if account.span == "month" else account.period]
        tokens = "sum(input+output+cache_read+cache_write), total(cost), sum(unpriced)"
        query = f"SELECT {tokens} FROM usage_days" + (f" WHERE {' AND '.join(where)}" if where else "")
        row = connection.execute(query, values).fetchone()
    return Used(row[0] or 0, row[1] or 0.0, row[2] or 0)


def _sum(row: Sequence[Any], by: Sequence[str]) -> Sum:
    calls, given, sent, read, written, cost, unpriced, failed = row[:8]
    usage = Usage(given, sent, read, written, cost)
    return Sum(dict(zip(by, row[8:], strict=False)), calls, usage, unpriced, failed)
