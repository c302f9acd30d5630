"""`sessions.subscribe` and its kin, previews, search: follow conversations and look into them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from garra.gateway import approvals
from garra.gateway.host import Host
from garra.gateway.method import APPROVALS, READ, Caller, Method
from garra.gateway.methods.sessions import SessionsList, page_of
from garra.gateway.params import Limit, Name, Nothing, Params
from garra.gateway.project import ALL, topic
from garra.gateway.reading import ChatHistory, read


class SessionsSubscribe(SessionsList, frozen=True):
    """With any of the list's parameters the answer holds the list too, so that nothing falls between the two."""


class MessagesSubscribe(Params, frozen=True):
    key: Name
    agent_id: Name | None = None
    include_approvals: bool = False


class MessagesUnsubscribe(Params, frozen=True):
    key: Name
    agent_id: Name | None = None


class SessionsPreview(Params, frozen=True):
    keys: list[str]
    limit: Limit = 12
    max_chars: Annotated[int, Meta(ge=20)] = 240


class SessionsSearch(Params, frozen=True):
    query: Annotated[str, Meta(min_length=1, max_length=4096)]
    agent_id: Name | None = None
    session_keys: list[str] | None = None
    scope: dict[str, Any] | None = None
    limit: Annotated[int, Meta(ge=1, le=25)] = 10


class SessionsGet(Params, frozen=True):
    key: Name
    agent_id: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 200


class ViewersSet(Params, frozen=True):
    session_keys: list[str]
    agent_id: Name | None = None


class ObserverVisibility(Params, frozen=True):
    visible: bool


PREVIEWED = 64


async def subscribe(host: Host, caller: Caller, params: SessionsSubscribe) -> dict[str, Any]:
    caller.watching.add(ALL)
    if params == SessionsSubscribe():
        return {"subscribed": True}
    return {"subscribed": True, "list": await page_of(host, params)}


def unsubscribe(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    caller.watching.discard(ALL)
    return {"subscribed": False}


def messages_subscribe(host: Host, caller: Caller, params: MessagesSubscribe) -> dict[str, Any]:
    key = host.key(params.key, params.agent_id)
    caller.watching.add(topic(key))
    answer: dict[str, Any] = {"subscribed": True, "key": key}
    if params.include_approvals:
        seen = approvals.replay(host, key) if caller.may(APPROVALS) else []
        caller.watching.add(approvals.topic(key))
        waiting = {"sessionKey": key, "updatedAtMs": host.clock.now_ms(), "approvals": seen, "truncated": False}
        answer["approvalReplay"] = waiting
    return answer


def messages_unsubscribe(host: Host, caller: Caller, params: MessagesUnsubscribe) -> dict[str, Any]:
    key = host.key(params.key, params.agent_id)
    caller.watching.discard(topic(key))
    caller.watching.discard(approvals.topic(key))
    return {"subscribed": False, "key": key}


async def preview(host: Host, caller: Caller, params: SessionsPreview) -> dict[str, Any]:
    """The last words of several sessions."""
    found = [await _preview(host, key, params) for key in params.keys[:PREVIEWED]]
    return {"ts": host.clock.now_ms(), "previews": found}


async def _preview(host: Host, text: str, params: SessionsPreview) -> dict[str, Any]:
    key = host.key(text)
    if await host.sessions.get(key) is None:
        return {"key": text, "status": "missing", "items": []}
    lines = await host.sessions.preview(key, params.limit, params.max_chars)
    items = [{"role": line.role, "text": line.text} for line in lines]
    return {"key": text, "status": "ok" if items else "empty", "items": items}


async def search(host: Host, caller: Caller, params: SessionsSearch) -> dict[str, Any]:
    """Messages that hold the words, those of the newest sessions first."""
    agent = host.agent(params.agent_id) if params.agent_id else None
    keys = None if params.session_keys is None else {host.key(key, agent) for key in params.session_keys}
    hits = await host.sessions.search(
        params.query, agent_id=agent, limit=params.limit, keep=lambda each: keys is None or each.key in keys, ended=True
    )
    return {
        "results": [
            {
                "sessionKey": hit.session.key,
                "sessionId": hit.session.session_id,
                "messageId": hit.entry_id,
                "role": hit.role,
                "timestamp": hit.timestamp,
                "snippet": hit.snippet,
                "score": 1.0,
            }
            for hit in hits
            if hit.role in ("user", "assistant")
        ]
    }


async def get(host: Host, caller: Caller, params: SessionsGet) -> dict[str, Any]:
    """The last messages of a session."""
    asked = ChatHistory(session_key=params.key, agent_id=params.agent_id, limit=params.limit)
    return {"messages": (await read(host, asked))["messages"]}


def viewers_set(host: Host, caller: Caller, params: ViewersSet) -> dict[str, Any]:
    """Which sessions a client has on its screen; there is one owner here, so nobody else is told."""
    return {"sessionKeys": [host.key(key, params.agent_id) for key in params.session_keys]}


def observer_visibility(host: Host, caller: Caller, params: ObserverVisibility) -> dict[str, Any]:
    return {"ok": True}


METHODS: tuple[Method, ...] = (
    Method("sessions.subscribe", READ, SessionsSubscribe, subscribe, startup=True),
    Method("sessions.unsubscribe", READ, Nothing, unsubscribe),
    Method("sessions.messages.subscribe", READ, MessagesSubscribe, messages_subscribe),
    Method("sessions.messages.unsubscribe", READ, MessagesUnsubscribe, messages_unsubscribe),
    Method("sessions.preview", READ, SessionsPreview, preview),
    Method("sessions.search", READ, SessionsSearch, search),
    Method("sessions.get", READ, SessionsGet, get, advertised=False),
    Method("sessions.viewers.set", READ, ViewersSet, viewers_set),
    Method("sessions.observer.visibility", READ, ObserverVisibility, observer_visibility),
)
