"""`sessions.usage`, `usage.cost`, `usage.report`: tokens and costs, from the ledger of model calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from garra.core.errors import UserError
from garra.core.ids import SessionKey
from garra.core.keys import agent_of
from garra.core.messages import Usage
from garra.core.value import frozen
from garra.domains.sessions.rows import Query
from garra.domains.sessions.session import Session
from garra.domains.spending.ledger import DAY_MS, Sum
from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.params import Limit, Name, Params
from garra.gateway.work import ledger as ledger_of
from garra.runs import older

EPOCH: Final = date(1970, 1, 1).toordinal()
DAY: Final = timedelta(days=1)
DAYS = {"7d": 7, "30d": 30, "90d": 90, "1y": 365}
MOST = 500
"""Sessions that one answer lists at most, the newest."""


class SessionsUsage(Params, frozen=True):
    """Days are those of `time_zone` (UTC without one), both ends counted; without any the last 30."""

    key: Name | None = None
    agent_id: Name | None = None
    agent_scope: str | None = None
    creator_key: Name | None = None
    start_date: str | None = None
    end_date: str | None = None
    mode: Literal["utc", "gateway", "specific"] = "utc"
    range: Literal["7d", "30d", "90d", "1y", "all"] | None = None
    group_by: Literal["instance", "family"] | None = None
    include_historical: bool = False
    utc_offset: str | None = None
    time_zone: Name | None = None
    limit: Limit = 50
    include_context_weight: bool = False


class UsageCost(Params, frozen=True):
    """As `sessions.usage` counts days; `days` up to today."""

    agent_id: Name | None = None
    agent_scope: str | None = None
    start_date: str | None = None
    end_date: str | None = None
    days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None = None
    mode: Literal["utc", "gateway", "specific"] = "utc"
    utc_offset: str | None = None
    time_zone: Name | None = None


class UsageReport(Params, frozen=True):
    """`days` up to today, those of the owner."""

    by: Literal["session", "sender", "agent", "model", "day", "job"] = "day"
    days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] = 30


def tokens(usage: Usage) -> dict[str, Any]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "totalTokens": usage.total,
        "totalCost": round(usage.cost, 6),
    }


@frozen
class Days:
    """The days that count, first and last, in a time zone."""

    first: date
    last: date
    zone: tzinfo

    def day(self, at_ms: int) -> str:
        """The day of a moment; empty when it does not count."""
        at = datetime.fromtimestamp(at_ms / 1000, self.zone).date()
        return at.isoformat() if self.first <= at <= self.last else ""

    @property
    def moments(self) -> tuple[int, int]:
        """From when to when, in milliseconds; with half a day to spare at either end."""
        return _ms(self.first) - DAY_MS, _ms(self.last) + 2 * DAY_MS


def _ms(day: date) -> int:
    return (day.toordinal() - EPOCH) * DAY_MS


def span(params: SessionsUsage, now_ms: int) -> Days:
    """Raises UserError for what is no date or no time zone."""
    zone = _zone(params)
    today = datetime.fromtimestamp(now_ms / 1000, zone).date()
    last = _date(params.end_date, "endDate") or today
    if params.range == "all":
        return Days(date.min, last, zone)
    days = DAYS[params.range] if params.range else 30
    return Days(_date(params.start_date, "startDate") or last - timedelta(days=days - 1), last, zone)


def _zone(params: SessionsUsage) -> tzinfo:
    if params.mode != "specific" or not params.time_zone:
        return UTC
    try:
        return ZoneInfo(params.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise UserError(f"sessions.usage: no time zone {params.time_zone[:60]!r}") from None


def _date(text: str | None, name: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise UserError(f"sessions.usage: {name} {text!r} is no date (YYYY-MM-DD)") from None


async def usage(host: Host, caller: Caller, params: SessionsUsage) -> dict[str, Any]:
    now = host.clock.now_ms()
    wanted = await asyncio.to_thread(span, params, now)
    sessions = await _sessions(host, params)
    only = sessions[0].key if params.key and sessions else params.key or ""
    agent = host.agent(params.agent_id) if params.agent_id else ""
    cells = [
        (day, cell)
        for day, cell in await counted(host, wanted)
        if only in ("", cell.of["session"]) and (not agent or agent_of(SessionKey(cell.of["session"]), "main") == agent)
    ]
    own: dict[str, Usage] = {}
    for _, cell in cells:
        own[cell.of["session"]] = own.get(cell.of["session"], Usage()) + cell.usage
    rows = [{**_row(each), "usage": tokens(own[each.key]) if each.key in own else None} for each in sessions]
    tools, runs = await ledger_of(host).tools(*wanted.moments, only)
    return {
        "updatedAt": now,
        "startDate": wanted.first.isoformat(),
        "endDate": wanted.last.isoformat(),
        "sessions": rows,
        "totals": tokens(_total(cells)),
        "aggregates": _aggregates(cells, tools, runs),
        "creatorOptions": (),
        "cacheStatus": {"status": "fresh", "cachedFiles": len(rows), "pendingFiles": 0, "staleFiles": 0},
    }


async def counted(host: Host, wanted: Days) -> list[tuple[str, Sum]]:
    """(day, what it came to), by conversation, provider and model. What transcripts of old hold is counted first.

    As long as single calls are kept the days are exactly those of the time zone; before, they are the owner's.
    """
    ledger = ledger_of(host)
    await older.take(ledger, host.sessions)
    found = []
    for at_ms, cell in await ledger.quarters(*wanted.moments):
        if day := wanted.day(at_ms):
            found.append((day, cell))
    oldest = await ledger.oldest_ms()
    last = wanted.last if oldest is None else min(wanted.last, date.fromisoformat(ledger.day(oldest)) - DAY)
    by = ("session", "provider", "model", "day")
    before = await ledger.sums(by, wanted.first.isoformat(), last.isoformat())
    return [*found, *((cell.of["day"], cell) for cell in before)]


async def _sessions(host: Host, params: SessionsUsage) -> list[Session]:
    if params.key:
        found = await host.sessions.get(host.key(params.key, params.agent_id))
        return [found] if found else []
    agent = host.agent(params.agent_id) if params.agent_id else None
    page = await host.sessions.list(Query(agent_id=agent, archived=None, limit=min(params.limit, MOST)))
    return list(page.sessions)


def _total(cells: Iterable[tuple[str, Sum]]) -> Usage:
    return sum((cell.usage for _, cell in cells), Usage())


def _row(session: Session) -> dict[str, Any]:
    return {
        "key": session.key,
        "sessionId": session.session_id,
        "label": session.label,
        "agentId": session.agent_id,
        "updatedAt": session.updated_at,
        "modelProvider": session.provider,
        "model": session.model,
    }


def _aggregates(cells: Sequence[tuple[str, Sum]], tools: Counter[str], runs: int) -> dict[str, Any]:
    """`user` are the runs that were asked for, `toolResults` the calls that tools were asked for. Lists of what is not
    counted here (latency, channels, creators) are empty, not missing: pages of the original read each.
    """
    models: dict[tuple[str, str], Usage] = {}
    days: dict[str, Usage] = {}
    for day, cell in cells:
        name = (cell.of["provider"], cell.of["model"])
        models[name] = models.get(name, Usage()) + cell.usage
        days[day] = days.get(day, Usage()) + cell.usage
    answers, calls = sum(cell.calls for _, cell in cells), sum(tools.values())
    runs, calls = (runs, calls) if cells else (0, 0)
    return {
        "sessionCount": len({cell.of["session"] for _, cell in cells}),
        **dict.fromkeys(("byChannel", "byCreator", "costDaily", "dailyLatency", "modelDaily"), ()),
        "byProvider": _by(cells, "provider", lambda cell: cell.of["provider"]),
        "byAgent": _by(cells, "agentId", lambda cell: agent_of(SessionKey(cell.of["session"]), "main")),
        "messages": {
            "total": runs + answers + calls,
            "user": runs,
            "assistant": answers,
            "toolCalls": calls,
            "toolResults": calls,
            "errors": sum(cell.failed for _, cell in cells),
        },
        "tools": {
            "totalCalls": calls,
            "uniqueTools": len(tools),
            "tools": [{"name": name, "count": count} for name, count in tools.most_common()],
        },
        "byModel": [
            {"provider": provider, "model": model, "totals": tokens(spent)}
            for (provider, model), spent in sorted(models.items())
        ],
        "daily": [
            {"date": day, "tokens": spent.total, "cost": round(spent.cost, 6)} for day, spent in sorted(days.items())
        ],
    }


def _by(cells: Sequence[tuple[str, Sum]], name: str, of: Callable[[Sum], str]) -> list[dict[str, Any]]:
    """What was used, by what `of` says of each cell, a row each."""
    found: dict[str, Usage] = {}
    for _, cell in cells:
        found[of(cell)] = found.get(of(cell), Usage()) + cell.usage
    return [{name: each, "totals": tokens(spent)} for each, spent in sorted(found.items())]


async def cost(host: Host, caller: Caller, params: UsageCost) -> dict[str, Any]:
    now = host.clock.now_ms()
    wider = SessionsUsage(
        agent_id=params.agent_id, start_date=params.start_date, end_date=params.end_date, mode=params.mode,
        time_zone=params.time_zone,
    )  # fmt: skip
    wanted = await asyncio.to_thread(span, wider, now)
    if params.days and not params.start_date:
        wanted = Days(wanted.last - timedelta(days=params.days - 1), wanted.last, wanted.zone)
    agent = host.agent(params.agent_id) if params.agent_id else ""
    days: dict[str, Sum] = {}
    for day, cell in await counted(host, wanted):
        if not agent or agent_of(SessionKey(cell.of["session"]), "main") == agent:
            days[day] = days[day] + cell if day in days else cell
    whole = sum(days.values(), Sum({}, 0, Usage()))
    return {
        "updatedAt": now,
        "days": (wanted.last - wanted.first).days + 1,
        "daily": [{"date": day, **_cost(spent)} for day, spent in sorted(days.items())],
        "totals": _cost(whole),
    }


def _cost(spent: Sum) -> dict[str, Any]:
    return {**tokens(spent.usage), "calls": spent.calls, "missingCostEntries": spent.unpriced}


async def report(host: Host, caller: Caller, params: UsageReport) -> dict[str, Any]:
    """Days are the owner's own. `rows` come with the most expensive first."""
    ledger, now = ledger_of(host), host.clock.now_ms()
    await older.take(ledger, host.sessions)
    last = ledger.day(now)
    first = (date.fromisoformat(last) - timedelta(days=params.days - 1)).isoformat()
    by = ("provider", "model") if params.by == "model" else (params.by,)
    found = await ledger.sums(by, first, last)
    rows = [{"name": "/".join(each.of[name] for name in by), **_cost(each)} for each in found]
    if params.by == "day":
        rows.sort(key=lambda row: str(row["name"]))
    whole = sum(found, Sum({}, 0, Usage()))
    return {"by": params.by, "startDate": first, "endDate": last, "rows": rows, "totals": _cost(whole)}


METHODS: tuple[Method, ...] = (
    Method("sessions.usage", READ, SessionsUsage, usage, advertised=False),
    Method("usage.cost", READ, UsageCost, cost),
    Method("usage.report", READ, UsageReport, report),
)
