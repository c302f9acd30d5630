"""The ledger of model calls: counted at once, stored behind, summed by day, read back after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

import pytest

from garra.core.messages import Usage
from garra.core.spending import Account, Payer, Used
from garra.domains.spending.ledger import DAY_MS, KEPT_DAYS, Ledger, Spent, accounts
from garra.io.store.db import Database

NOW = 1_796_000_000_000  # 2026-11-30


@dataclass
class Hands:
    """A clock whose hands a test moves."""

    ms: int = NOW

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    async def sleep(self, seconds: float) -> None:
        raise AssertionError


@asynccontextmanager
async def opened(folder: Path, clock: Hands) -> AsyncIterator[tuple[Ledger, Database]]:
    db = Database(folder / "state.db")
    ledger = Ledger(db, clock, lambda: UTC)
    await ledger.load()
    try:
        yield ledger, db
    finally:
        await db.close()


def payer(run: str = "r1", root: str = "", session: str = "agent:main:main", sender: str = "t:d:7") -> Payer:
    return Payer(run, root or run, session, "main", sender)


def spent(at_ms: int = NOW, who: Payer | None = None, tokens: int = 100, cost: float = 0.5, **more: bool) -> Spent:
    return Spent(at_ms, who or payer(), "p", "m", Usage(tokens - 10, 10, cost=cost), tools=("exec", "read"), **more)


def day(scope: str = "day", id_: str = "", period: str = "2026-11-30") -> Account:
    return Account(scope, id_, "day", period)  # type: ignore[arg-type]


async def test_what_is_noted_counts_at_once_and_after_a_restart(tmp_path: Path) -> None:
    clock = Hands()
    async with opened(tmp_path, clock) as (ledger, _):
        assert await ledger.used([day()]) == [Used()]
        for number in range(50):
            ledger.note(spent(who=payer(f"r{number}", "r0" if number < 10 else "")))
        wanted = [day(), day("sender", "t:d:7"), Account("run", "r0", "run", "r0"), day("session", "other")]
        assert await ledger.used(wanted) == [Used(5_000, 25.0), Used(5_000, 25.0), Used(1_000, 5.0), Used()]
    async with opened(tmp_path, clock) as (ledger, _):
        assert (await ledger.used(wanted))[0] == Used(5_000, 25.0)
        assert await ledger.used([Account("agent", "main", "month", "2026-11")]) == [Used(5_000, 25.0)]
        assert await ledger.used([Account("agent", "main", "total", "")]) == [Used(5_000, 25.0)]


async def test_what_another_process_spends_is_seen_after_a_minute(tmp_path: Path) -> None:
    clock = Hands()
    async with opened(tmp_path, clock) as (here, _), opened(tmp_path, clock) as (there, other):
        assert await here.used([day()]) == [Used()]
        there.note(spent())
        await other.write(lambda _: None)
        here.note(spent())
        assert await here.used([day()]) == [Used(100, 0.5)]
        clock.ms += 61_000
        assert await here.used([day()]) == [Used(200, 1.0)]


async def test_a_price_that_nobody_knows_is_counted_apart(tmp_path: Path) -> None:
    async with opened(tmp_path, Hands()) as (ledger, _):
        ledger.note(spent(cost=0.0, priced=False))
        assert await ledger.used([day(), Account("run", "r1", "run", "r1")]) == [Used(100, 0.0, 1)] * 2
        (row,) = await ledger.sums(("provider", "model"), "2026-11-30", "2026-11-30")
        assert (row.of, row.calls, row.unpriced) == ({"provider": "p", "model": "m"}, 1, 1)


async def test_single_calls_are_forgotten_after_ninety_days_and_days_never(tmp_path: Path) -> None:
    clock = Hands()
    async with opened(tmp_path, clock) as (ledger, db):
        ledger.note(spent())
        ledger.note(spent(NOW + 10 * DAY_MS))
        await ledger.tell(["day\x1f\x1f2026-11-30\x1f50"])
        clock.ms = NOW + (KEPT_DAYS + 5) * DAY_MS
        await ledger.sweep()
        assert await db.read(lambda c: c.execute("SELECT count(*) FROM usage_calls").fetchone()[0]) == 1
        days = await ledger.sums(("day",), "2026-01-01", "2027-12-31")
        assert sorted(row.of["day"] for row in days) == ["2026-11-30", "2026-12-10"]
        assert len(ledger.told) == 1
        clock.ms += 400 * DAY_MS
        await ledger.sweep()
        assert not ledger.told


async def test_a_step_is_told_once_over_restarts(tmp_path: Path) -> None:
    async with opened(tmp_path, Hands()) as (ledger, _):
        assert await ledger.tell(["a", "b"])
        assert not await ledger.tell(["b"])
    async with opened(tmp_path, Hands()) as (ledger, _):
        assert not await ledger.tell(["a"])


async def test_what_a_conversation_held_before_is_taken_once(tmp_path: Path) -> None:
    async with opened(tmp_path, Hands()) as (ledger, _):
        for _ in range(2):
            await ledger.take("s1", [spent(), spent()])
        assert await ledger.used([day()]) == [Used(200, 1.0)]
        assert await ledger.taken() == {"s1"}


async def test_quarters_and_tools_are_those_of_the_time_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path, Hands()) as (ledger, _):
        ledger.note(spent())
        ledger.note(spent(NOW + DAY_MS, payer("r2", session="agent:main:x")))
        await ledger.used([day()])
        assert [cell.calls for _, cell in await ledger.quarters(NOW, NOW + 1)] == [1]
        tools, runs = await ledger.tools(NOW, NOW + DAY_MS)
        assert (tools["exec"], tools["read"], runs) == (2, 2, 2)
        assert (await ledger.tools(NOW, NOW + DAY_MS, "agent:main:x"))[1] == 1
        assert await ledger.oldest_ms() == NOW


@pytest.mark.parametrize("job", ["", "j1"])
def test_a_call_counts_for_each_of_its_accounts(job: str) -> None:
    found = accounts(Payer("r2", "r1", "s", "main", "", job), "2026-11-30")
    assert Account("run", "r1", "run", "r1") in found
    assert Account("sender", "", "day", "2026-11-30") in found
    assert (Account("job", "j1", "total", "") in found) is bool(job)
    assert len(found) == len(set(found))
