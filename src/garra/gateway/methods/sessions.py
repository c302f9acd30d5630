"""`sessions.*`: the list of conversations, and what can be done with one of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from garra.core.errors import NotFound, UserError
from garra.domains.sessions.rows import Page, Query
from garra.domains.sessions.session import Session
from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.params import Index, Limit, Name, Params, UnsetType
from garra.gateway.rows import defaults, title

Label = Annotated[str, Meta(min_length=1, max_length=512)]
TEXT = str | None | UnsetType
PAGE = 100
MOST = 1000


class SessionsList(Params, frozen=True):
    """Which rows. What this gateway does not tell apart is taken and ignored."""

    limit: Limit | None = None
    offset: Index = 0
    active_minutes: Limit | None = None
    active_only: bool = False
    require_last_interaction: bool = False
    sort_by: Literal["updatedAt", "lastInteractionAt", "activity"] | None = None
    include_global: bool = False
    include_unknown: bool = False
    exclude_subagents: bool = False
    exclude_cron: bool = False
    exclude_system: bool = False
    configured_agents_only: bool = False
    include_derived_titles: bool = False
    include_last_message: bool = False
    include_activity_summary: bool = False
    label: Label | None = None
    project_id: Name | None = None
    workspace_dir: Name | None = None
    group: str | None = None
    pinned: bool | None = None
    board_face: Literal["chat", "dashboard"] | None = None
    has_board: bool | None = None
    creator_id: Name | None = None
    owner_id: Name | None = None
    owner_first: bool = False
    involving_me: bool | None = None
    profile_relation: dict[str, Any] | None = None
    involving_profile_id: Name | None = None
    include_people: bool = False
    spawned_by: Name | None = None
    agent_id: Name | None = None
    search: str | None = None
    archived: bool | Literal["all"] = False


class SessionsDescribe(Params, frozen=True):
    key: Name
    agent_id: Name | None = None
    include_derived_titles: bool = True
    include_last_message: bool = True


class SessionsResolve(Params, frozen=True):
    key: Name | None = None
    session_id: Name | None = None
    label: Label | None = None
    reference: dict[str, Any] | None = None
    short_id: Name | None = None
    slug_hint: Name | None = None
    agent_id: Name | None = None
    spawned_by: Name | None = None
    include_global: bool = False
    include_unknown: bool = False
    allow_missing: bool = False


async def listed(host: Host, caller: Caller, params: SessionsList) -> dict[str, Any]:
    return await page_of(host, params)


async def page_of(host: Host, params: SessionsList) -> dict[str, Any]:
    """One page of rows, newest first."""
    page = await host.sessions.list(_query(host, params))
    rows = host.rows()
    shown = [
        rows.row(session, titles=True, last=params.include_last_message)
        for session in page.sessions
        if _kept(session, params)
    ]
    agent = host.agent(params.agent_id)
    return {
        "ts": host.clock.now_ms(),
        "path": str(host.paths.db),
        **_counts(page, len(shown)),
        "owners": [],
        "defaults": defaults(host.config, host.models, agent),
        "sessions": shown,
    }


def _query(host: Host, params: SessionsList) -> Query:
    since = host.clock.now_ms() - params.active_minutes * 60_000 if params.active_minutes else 0
    return Query(
        agent_id=host.agent(params.agent_id) if params.agent_id else None,
        search=params.search or "",
        label=params.label,
        archived=None if params.archived == "all" else params.archived,
        since=since,
        spawned_by=params.spawned_by,
        limit=min(params.limit or PAGE, MOST),
        offset=params.offset,
    )


def _kept(session: Session, params: SessionsList) -> bool:
    key = session.key
    return not (
        (params.exclude_subagents and ":subagent:" in key)
        or (params.exclude_cron and (":cron:" in key or key.startswith("cron:")))
        or (params.pinned is not None and session.pinned != params.pinned)
    )


def _counts(page: Page, count: int) -> dict[str, Any]:
    counts = {"count": count, "totalCount": page.total, "limitApplied": page.limit, "nextOffset": page.next_offset}
    return {**counts, "hasMore": page.next_offset is not None, **({"offset": page.offset} if page.offset else {})}


async def describe(host: Host, caller: Caller, params: SessionsDescribe) -> dict[str, Any]:
    session = await host.sessions.get(host.key(params.key, params.agent_id))
    if session is None:
        return {"session": None}
    shown = host.rows().row(session, titles=params.include_derived_titles, last=params.include_last_message)
    return {"session": shown}


async def resolve(host: Host, caller: Caller, params: SessionsResolve) -> dict[str, Any]:
    """The key that a key, session id, short id or label means."""
    session = await _meant(host, params)
    if session is None:
        if params.allow_missing:
            return {"ok": False}
        raise NotFound(f"No session found: {params.key or params.label or params.session_id or params.short_id}")
    answer: dict[str, Any] = {"ok": True, "key": session.key, "agentId": session.agent_id}
    return {**answer, "displayName": name} if (name := title(session)) else answer


async def _meant(host: Host, params: SessionsResolve) -> Session | None:
    if params.key:
        return await host.sessions.get(host.key(params.key, params.agent_id))
    if params.session_id:
        return await host.sessions.by_id(params.session_id)
    agent = host.agent(params.agent_id) if params.agent_id else None
    if params.label:
        found = await host.sessions.list(Query(agent_id=agent, label=params.label, archived=None, limit=2))
        return found.sessions[0] if found.sessions else None
    if params.short_id:
        found = await host.sessions.list(Query(agent_id=agent, search=params.short_id, archived=None, limit=MOST))
        hits = [each for each in found.sessions if each.session_id.startswith(params.short_id)]
        if len(hits) > 1:
            raise UserError(f"short id {params.short_id} means {len(hits)} sessions: give more of it")
        return hits[0] if hits else None
    raise UserError("invalid sessions.resolve params: one of key, sessionId, label, shortId is needed")


METHODS: tuple[Method, ...] = (
    Method("sessions.list", READ, SessionsList, listed, startup=True),
    Method("sessions.describe", READ, SessionsDescribe, describe),
    Method("sessions.resolve", READ, SessionsResolve, resolve, advertised=False),
)
