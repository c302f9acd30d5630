"""Errands of the session tools that read: which conversations there are, what was said, how one stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from garra.config import view
from garra.core import redact, taint
from garra.core.errors import NotFound
from garra.core.messages import Assistant, Message, ToolResult, User
from garra.domains.sessions.rows import Query
from garra.domains.sessions.session import Session
from garra.gateway.errands.sight import Run, outsiders, parsed, reached, rules, sees
from garra.gateway.host import Host
from garra.gateway.params import Params
from garra.gateway.rows import model_of, title
from garra.runs.errand import Errand

PAGES: Final = 5
PAGE: Final = 200
"""Rows that one list looks at, at most."""
LETTERS: Final = 4_000
"""Characters of one message."""
BYTES: Final = 80_000
"""Of one answer."""
HITS: Final = 500
"""Conversations that a search looks through."""

Count = Annotated[int, Meta(ge=1, le=200)]


class Listing(Params, frozen=True):
    limit: Count = 50
    offset: Annotated[int, Meta(ge=0)] = 0
    search: str = ""
    agent_id: str = ""
    active_minutes: int = 0


class Reading(Params, frozen=True):
    session_key: str = ""
    limit: Count = 20
    offset: Annotated[int, Meta(ge=0)] = 0
    include_tools: bool = False


class Searching(Params, frozen=True):
    query: Annotated[str, Meta(min_length=1, max_length=512)]
    limit: Count = 20


class Standing(Params, frozen=True):
    session_key: str = ""


async def listed(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    params = parsed(raw, Listing)
    since = host.clock.now_ms() - params.active_minutes * 60_000 if params.active_minutes > 0 else 0
    rows: list[dict[str, Any]] = []
    offset: int | None = params.offset
    for _ in range(PAGES):
        query = Query(params.agent_id or None, params.search, since=since, limit=PAGE, offset=offset or 0)
        page = await host.sessions.list(query)
        for at, session in enumerate(page.sessions):
            if await sees(host, errand, session):
                rows.append(_row(host, session))
            if len(rows) == params.limit:
                return _listed(
                    host, errand, rows, (offset or 0) + at + 1 if at + 1 < len(page.sessions) else page.next_offset
                )
        offset = page.next_offset
        if offset is None:
            break
    return _listed(host, errand, rows, offset)


def _listed(host: Host, errand: Errand, rows: list[dict[str, Any]], offset: int | None) -> dict[str, Any]:
    scope = rules(host, errand).visibility
    more = {"hasMore": offset is not None, **({"nextOffset": offset} if offset is not None else {})}
    return {"count": len(rows), "sessions": rows, "visibility": scope if errand.owners else "own", **more}


def _row(host: Host, session: Session) -> dict[str, Any]:
    busy = host.runs.active(session.key) is not None
    row = {
        "key": session.key,
        "sessionId": session.session_id,
        "agentId": session.agent_id,
        "label": title(session) or "",
        "channel": session.extra.get("channel"),
        "spawnedBy": session.extra.get("spawnedBy"),
        "updatedAt": session.updated_at,
        "running": busy,
    }
    return {name: value for name, value in row.items() if value not in (None, "")}


async def history(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The newest messages, oldest first; `nextOffset` leads to older ones. No thinking, no pictures, no secrets."""
    params = parsed(raw, Reading)
    session = await reached(host, errand, params.session_key)
    transcript = await host.sessions.transcript(session.key)
    kept = [each for each in transcript.messages() if params.include_tools or not isinstance(each, ToolResult)]
    end = max(0, len(kept) - params.offset)
    start = max(0, end - params.limit)
    clean = redact.cleaner(view.known_secrets(host.live.snapshot))
    rows = [row for each in kept[start:end] if (row := _said(each, clean, tools=params.include_tools))]
    dropped = 0
    while rows and len(json.dumps(rows, ensure_ascii=False)) > BYTES:
        rows.pop(0)
        dropped += 1
    found = [mark for each in kept[start:end] for mark in taint.of(each.meta)]
    marks = [*outsiders(errand, session.key), *taint.stored(found).get(taint.META, ())]
    more: dict[str, Any] = {"nextOffset": params.offset + (end - start) - dropped} if start or dropped else {}
    return {"sessionKey": session.key, "messages": rows, "marks": marks, "hasMore": bool(more), **more}


def _said(message: Message, clean: Any, *, tools: bool) -> dict[str, Any] | None:
    roles = {User: "user", Assistant: "assistant"}
    role = f"tool {message.name}" if isinstance(message, ToolResult) else roles[type(message)]
    text = clean(message.text)
    cut = len(text) > LETTERS
    row: dict[str, Any] = {"role": role, "text": f"{text[:LETTERS]}… (cut)" if cut else text, "at": message.timestamp}
    if tools and isinstance(message, Assistant) and message.calls:
        row["calls"] = [call.name for call in message.calls]
    return row if row["text"].strip() or "calls" in row else None


async def search(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    params = parsed(raw, Searching)
    page = await host.sessions.list(Query(archived=None, limit=HITS))
    seen = {session.key for session in page.sessions if await sees(host, errand, session)}
    hits = await host.sessions.search(params.query, limit=params.limit, keep=lambda each: each.key in seen)
    clean = redact.cleaner(view.known_secrets(host.live.snapshot))
    rows = [
        {"sessionKey": hit.session.key, "role": hit.role, "text": clean(hit.snippet), "at": hit.timestamp}
        for hit in hits
    ]
    marks = [mark for hit in hits for mark in outsiders(errand, hit.session.key)]
    return {"count": len(rows), "hits": rows, "marks": list({mark["where"]: mark for mark in marks}.values())}


async def status(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    session = await reached(host, errand, parsed(raw, Standing).session_key)
    run = host.runs.active(session.key)
    model = model_of(host.models, session.override, session.agent_id)
    totals = session.totals
    return {
        **_row(host, session),
        "model": model.ref if model else None,
        "thinking": session.thinking or "as set for all",
        "contextTokens": totals.total if totals else 0,
        "contextWindow": model.context_window if model else None,
        "createdAt": session.created_at,
        "now": host.clock.now_ms(),
        "timeZone": host.config.agents.defaults.time_zone or "UTC",
        "run": None if run is None else {"runId": run.run_id, "state": run.state, "startedAt": run.started_at},
        "version": host.version,
        **({"outside": read} if (read := taint.told(session.extra.get(taint.ROW))) else {}),
    }


async def agents(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The agents a sub-agent of this one may be; somebody who is no owner hears of this agent alone."""
    config = host.config.agents
    own = config.find(errand.agent_id)
    named = (own.subagents.allow_agents if own else None) or config.defaults.subagents.allow_agents or ()
    ids = config.ids()
    allowed = {errand.agent_id, *(ids if "*" in named else (each.lower() for each in named))}
    if not errand.owners:
        allowed = {errand.agent_id}
    rows = []
    for agent_id in ids:
        if agent_id in allowed:
            agent = config.find(agent_id)
            name = (agent.identity.name or agent.name) if agent else ""
            rows.append({"id": agent_id, **({"name": name} if name else {}), "configured": agent is not None})
    if not rows:
        raise NotFound("There is no agent here.")
    return {"requester": errand.agent_id, "allowAny": "*" in named and errand.owners, "agents": rows}


ERRANDS: Mapping[str, Run] = {
    "sessions.list": listed,
    "sessions.history": history,
    "sessions.search": search,
    "session.status": status,
    "agents.list": agents,
}
