"""A session: one conversation under one key, and its JSON form as sessions.json and the wire show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from garra.core.ids import AgentId, SessionId, SessionKey
from garra.core.messages import Assistant, Message, ToolResult, Usage, User
from garra.core.outside import bare
from garra.core.value import frozen, replace

TITLE = 80
"""Characters of a title made from the first words."""

PREVIEW = 200
"""Characters kept of the last words."""


@frozen
class Session:
    """Times are milliseconds since 1970. `provider` and `model` are what answered last, the overrides what a person
    chose. `totals` counts the tokens of the newest model call, which is what fills the window. `extra` holds every
    other key of the stored entry as it is.
    """

    key: SessionKey
    session_id: SessionId
    agent_id: AgentId
    created_at: int
    updated_at: int
    started_at: int
    created_via: str = "run"
    label: str | None = None
    display_name: str | None = None
    provider: str | None = None
    model: str | None = None
    provider_override: str | None = None
    model_override: str | None = None
    thinking: str | None = None
    verbose: str | None = None
    archived: bool = False
    pinned: bool = False
    title: str | None = None
    last_message: str | None = None
    totals: Usage | None = None
    context_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def override(self) -> str | None:
        """The chosen model as `provider/id`."""
        if self.model_override is None:
            return None
        return f"{self.provider_override}/{self.model_override}" if self.provider_override else self.model_override


_NAMES = {
    "sessionId": "session_id",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "sessionStartedAt": "started_at",
    "createdVia": "created_via",
    "label": "label",
    "displayName": "display_name",
    "modelProvider": "provider",
    "model": "model",
    "providerOverride": "provider_override",
    "modelOverride": "model_override",
    "thinkingLevel": "thinking",
    "verboseLevel": "verbose",
    "archived": "archived",
    "pinned": "pinned",
    "derivedTitle": "title",
    "lastMessagePreview": "last_message",
    "contextTokens": "context_tokens",
}
_FIELDS = {name: wire for wire, name in _NAMES.items()}
_NUMBERS = ("created_at", "updated_at", "started_at", "context_tokens")
_FLAGS = ("archived", "pinned")
_TOTALS = ("inputTokens", "outputTokens", "cacheRead", "cacheWrite", "totalTokens", "estimatedCostUsd")


def entry_json(session: Session) -> dict[str, Any]:
    """The entry of sessions.json: only what is known."""
    body: dict[str, Any] = {}
    for wire, name in _NAMES.items():
        value = getattr(session, name)
        if value is not None and value is not False:
            body[wire] = value
    if session.totals is not None:
        totals = session.totals
        counts = (totals.input, totals.output, totals.cache_read, totals.cache_write, totals.total, totals.cost)
        body.update(zip(_TOTALS, counts, strict=True))
    return {**session.extra, **body}


def entry_from(key: str, agent_id: str, body: Mapping[str, Any]) -> Session:
    """The inverse of `entry_json`. Raises KeyError where there is no `sessionId`; wrong types are left out."""
    known: dict[str, Any] = {}
    for wire, name in _NAMES.items():
        value = body.get(wire)
        wanted = int if name in _NUMBERS else bool if name in _FLAGS else str
        if isinstance(value, wanted):
            known[name] = value
    updated = known.setdefault("updated_at", 0)
    known.setdefault("created_at", updated)
    known.setdefault("started_at", known["created_at"])
    known["session_id"] = SessionId(str(body["sessionId"]))
    extra = {wire: value for wire, value in body.items() if wire not in _NAMES and wire not in _TOTALS}
    return Session(key=SessionKey(key), agent_id=AgentId(agent_id), totals=_totals(body), extra=extra, **known)


def _totals(body: Mapping[str, Any]) -> Usage | None:
    if not any(name in body for name in _TOTALS):
        return None
    given, sent, read, written = (value if isinstance(value := body.get(name), int) else 0 for name in _TOTALS[:4])
    cost = body.get(_TOTALS[5])
    return Usage(given, sent, read, written, float(cost) if isinstance(cost, int | float) else 0.0)


def headline(text: str, length: int = TITLE) -> str:
    """The first words of `text` on one line."""
    words = " ".join(text[: length * 4].split())
    return words if len(words) <= length else words[: length - 1].rstrip() + "…"


def touched(session: Session, now_ms: int, **changes: Any) -> Session:
    """`session` as it is after something happened in it."""
    return replace(session, updated_at=max(now_ms, session.updated_at), **changes)


def said(session: Session, message: Message, now_ms: int) -> Session:
    """`session` as it is after `message` was stored in it."""
    text = bare(message.text)
    fields: dict[str, Any] = {}
    if not isinstance(message, ToolResult) and text.strip():
        fields["last_message"] = headline(text, PREVIEW)
    match message:
        case User():
            fields["extra"] = {**session.extra, "lastInteractionAt": now_ms}
            if session.title is None and text.strip():
                fields["title"] = headline(text)
        case Assistant() if message.usage.total:
            fields |= {"totals": message.usage, "provider": message.provider, "model": message.model}
        case _:
            pass
    return touched(session, now_ms, **fields)
