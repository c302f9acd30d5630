"""Tools that may be called without an agent: the gateway's own, and those of the house that its policy lets out."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from garra.core.access import NOBODY
from garra.core.errors import BadArguments, NotFound
from garra.core.frames import reword
from garra.core.ids import SessionKey
from garra.core.messages import part_json
from garra.core.policy import over_http
from garra.core.value import frozen
from garra.domains.sessions.rows import Query
from garra.gateway.host import Host
from garra.gateway.params import Limit, Name, Params
from garra.gateway.reading import ChatHistory, read
from garra.runs.explain import Asked


class ListArgs(Params, frozen=True):
    limit: Limit = 50
    active_minutes: Limit | None = None
    agent_id: Name | None = None
    search: str = ""


class HistoryArgs(Params, frozen=True):
    session_key: Name
    limit: Limit = 50


class NoArgs(Params, frozen=True):
    """None."""


@frozen
class Own:
    """One of the gateway's own tools; it reads and changes nothing."""

    label: str
    description: str
    params: type[Params]
    run: Callable[[Host, Any], Awaitable[Any]]


async def _sessions(host: Host, args: ListArgs) -> Any:
    since = host.clock.now_ms() - args.active_minutes * 60_000 if args.active_minutes else 0
    page = await host.sessions.list(
        Query(agent_id=args.agent_id, search=args.search, since=since, limit=min(args.limit, 500))
    )
    rows = host.rows()
    kept = ("key", "kind", "agentId", "label", "displayName", "updatedAt", "sessionId", "model", "totalTokens")
    shown = [rows.row(session) for session in page.sessions]
    return {"count": len(shown), "sessions": [{key: row[key] for key in kept if key in row} for row in shown]}


async def _history(host: Host, args: HistoryArgs) -> Any:
    asked = ChatHistory(session_key=args.session_key, limit=min(args.limit, 1000), max_chars=4000)
    answer = await read(host, asked)
    return {"sessionKey": answer["sessionKey"], "messages": answer["messages"]}


async def _agents(host: Host, args: NoArgs) -> Any:
    return {"agents": [{"id": agent_id} for agent_id in host.config.agents.ids()]}


OWN: Mapping[str, Own] = {
    "sessions_list": Own("Sessions", "List conversations, newest first.", ListArgs, _sessions),
    "sessions_history": Own("Session history", "Read a conversation.", HistoryArgs, _history),
    "agents_list": Own("Agents", "List agents.", NoArgs, _agents),
}


def reachable(host: Host, name: str) -> bool:
    """Whether a tool may be called from outside at all."""
    names = host.config.gateway.tools
    return over_http(name, allow=names.allow, deny=names.deny)


async def _offered(host: Host, name: str, session_key: SessionKey) -> bool:
    """Whether the policy lets that session have a tool of this name. Raises NotFound where it does not."""
    session = await host.sessions.get(session_key)
    rows = host.tools.policy(Asked(session_key), session, lambda *_: NOBODY)["tools"]
    if any(row["name"] == name and row["verdict"] == "deny" for row in rows):
        raise NotFound(f"Tool not available: {name[:80]}")
    return True


async def invoke(host: Host, name: str, args: Mapping[str, Any], session_key: SessionKey) -> dict[str, Any]:
    """`{content, details?}`. Raises NotFound for a tool that is unknown or may not be called from outside,
    BadArguments for arguments that do not fit, ToolFailed with the tool's own words.
    """
    if not reachable(host, name):
        raise NotFound(f"Tool not available: {name[:80]}")
    if (own := OWN.get(name)) and await _offered(host, name, session_key):
        details = await own.run(host, _args(own, args))
        text = json.dumps(details, ensure_ascii=False, indent=2, default=str)
        return {"content": [{"type": "text", "text": text}], "details": details}
    agent = session_key.split(":")[1] if session_key.startswith("agent:") else host.agent(None)
    if name not in [info.name for info in host.tools.infos(agent)]:
        raise NotFound(f"Tool not available: {name[:80]}")
    result = await host.tools.call(name, args, session_key)
    content = [part_json(part) for part in result.content]
    shown = {"content": content, "isError": result.is_error}
    return shown if result.details is None else {**shown, "details": result.details}


def _args(own: Own, args: Mapping[str, Any]) -> Params:
    try:
        return msgspec.convert(dict(args), own.params)
    except msgspec.ValidationError as fault:
        raise BadArguments(f"invalid arguments: {reword(str(fault))}") from None
