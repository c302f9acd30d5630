"""`sessions.usage`: tokens and costs, counted from what the transcripts hold."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from garra.core.errors import UserError
from garra.core.messages import Assistant, Message, ToolResult, Usage, User
from garra.core.value import frozen
from garra.domains.sessions.rows import Query
from garra.domains.sessions.session import Session
from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.params import Limit, Name, Params

DAYS = {"7d": 7, "30d": 30, "90d": 90, "1y": 365}
MOST = 500
"""Sessions that one answer counts at most, the newest."""


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


@dataclass(slots=True)
class Sum:
    """What was counted."""

    usage: Usage = field(default_factory=Usage)
    messages: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    models: dict[tuple[str, str], Usage] = field(default_factory=dict)
    days: dict[str, Usage] = field(default_factory=dict)

    def add(self, message: Message, day: str) -> None:
        self.messages["total"] += 1
        match message:
            case User():
                self.messages["user"] += 1
            case ToolResult():
                self.messages["toolResults"] += 1
                self.messages["errors"] += message.is_error
            case Assistant():
                self.messages["assistant"] += 1
                self.messages["toolCalls"] += len(message.calls)
                self.messages["errors"] += message.stop == "error"
                self.tools.update(call.name for call in message.calls)
                self._spent(message.usage, (message.provider, message.model), day)

    def _spent(self, usage: Usage, model: tuple[str, str], day: str) -> None:
        self.usage = self.usage + usage
        self.models[model] = self.models.get(model, Usage()) + usage
        self.days[day] = self.days.get(day, Usage()) + usage

    def join(self, other: Sum) -> None:
        self.usage = self.usage + other.usage
        self.messages += other.messages
        self.tools += other.tools
        for model, spent in other.models.items():
            self.models[model] = self.models.get(model, Usage()) + spent
        for day, spent in other.days.items():
            self.days[day] = self.days.get(day, Usage()) + spent


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
class Span:
    """The days that count, first and last."""

    first: date
    last: date
    zone: tzinfo

    def day(self, timestamp: int) -> str | None:
        """The day of a moment, None when it does not count."""
        at = datetime.fromtimestamp(timestamp / 1000, self.zone).date()
        return at.isoformat() if self.first <= at <= self.last else None


def span(params: SessionsUsage, now_ms: int) -> Span:
    """Raises UserError for what is no date or no time zone."""
    zone = _zone(params)
    today = datetime.fromtimestamp(now_ms / 1000, zone).date()
    last = _date(params.end_date, "endDate") or today
    if params.range == "all":
        return Span(date.min, last, zone)
    days = DAYS[params.range] if params.range else 30
    return Span(_date(params.start_date, "startDate") or last - timedelta(days=days - 1), last, zone)


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
    total, rows = Sum(), []
    for session in await _sessions(host, params):
        transcript = await host.sessions.transcript(session.key)
        own = _count((entry.message for entry in transcript.entries()), wanted)
        total.join(own)
        rows.append({**_row(session), "usage": tokens(own.usage) if own.messages else None})
    return {
        "updatedAt": now,
        "startDate": wanted.first.isoformat(),
        "endDate": wanted.last.isoformat(),
        "sessions": rows,
        "totals": tokens(total.usage),
        "aggregates": _aggregates(total),
        "cacheStatus": {"status": "fresh", "cachedFiles": len(rows), "pendingFiles": 0, "staleFiles": 0},
    }


async def _sessions(host: Host, params: SessionsUsage) -> list[Session]:
    if params.key:
        found = await host.sessions.get(host.key(params.key, params.agent_id))
        return [found] if found else []
    agent = host.agent(params.agent_id) if params.agent_id else None
    page = await host.sessions.list(Query(agent_id=agent, archived=None, limit=min(params.limit, MOST)))
    return list(page.sessions)


def _count(messages: Iterable[Message | None], wanted: Span) -> Sum:
    counted = Sum()
    for message in messages:
        if message is not None and (day := wanted.day(message.timestamp)):
            counted.add(message, day)
    return counted


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


def _aggregates(total: Sum) -> dict[str, Any]:
    names = ("total", "user", "assistant", "toolCalls", "toolResults", "errors")
    tools = [{"name": name, "count": count} for name, count in total.tools.most_common()]
    models = [
        {"provider": provider, "model": model, "totals": tokens(spent)}
        for (provider, model), spent in sorted(total.models.items())
    ]
    daily = [
        {"date": day, "tokens": spent.total, "cost": round(spent.cost, 6)} for day, spent in sorted(total.days.items())
    ]
    return {
        "messages": {name: total.messages[name] for name in names},
        "tools": {"totalCalls": sum(total.tools.values()), "uniqueTools": len(tools), "tools": tools},
        "byModel": models,
        "daily": daily,
    }


METHODS: tuple[Method, ...] = (Method("sessions.usage", READ, SessionsUsage, usage, advertised=False),)
