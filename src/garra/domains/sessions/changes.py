"""What a client may change of a session, and what each value may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from garra.core.errors import UserError
from garra.core.thinking import SETTINGS
from garra.domains.sessions.session import Session

VERBOSE = ("off", "on", "full")
LABEL = 512

Check = Callable[[str, Any], Any]


def _fail(name: str, wanted: str) -> UserError:
    return UserError(f"sessions.patch: {name} must be {wanted}")


def _text(longest: int) -> Check:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or len(value.strip()) > longest:
            raise _fail(name, f"text of 1 to {longest} characters, or null to clear it")
        return value.strip()

    return check


def _one_of(*allowed: str) -> Check:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value.lower() not in allowed:
            raise _fail(name, f"one of {', '.join(allowed)}, or null to clear it")
        return value.lower()

    return check


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _fail(name, "true or false")
    return value


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _fail(name, "a whole number of 0 or more, or null to clear it")
    return value


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fail(name, "an object, or null to clear it")
    return value


_FIELDS: dict[str, tuple[str, Check]] = {
    "label": ("label", _text(LABEL)),
    "displayName": ("display_name", _text(LABEL)),
    "thinkingLevel": ("thinking", _one_of(*SETTINGS)),
    "verboseLevel": ("verbose", _one_of(*VERBOSE)),
    "archived": ("archived", _flag),
    "pinned": ("pinned", _flag),
    "contextTokens": ("context_tokens", _whole),
    "modelProvider": ("provider", _text(LABEL)),
}

_EXTRA: dict[str, Check] = {
    "fastMode": _flag,
    "unread": _flag,
    "traceLevel": _one_of(*VERBOSE, "raw"),
    "reasoningLevel": _one_of("off", "on", "stream"),
    "elevatedLevel": _one_of("off", "on", "ask", "full"),
    "responseUsage": _one_of("off", "on", "tokens", "full"),
    "sendPolicy": _one_of("allow", "deny"),
    "groupActivation": _one_of("mention", "always"),
    "queueMode": _one_of("steer", "followup", "collect", "interrupt", "drop", "steer-backlog"),
    "queueDebounceMs": _whole,
    "queueCap": _whole,
    "queueDrop": _one_of("summarize", "old", "new"),
    "replyToMode": _one_of("off", "first", "all"),
    "execHost": _one_of("auto", "sandbox", "gateway", "node"),
    "execSecurity": _one_of("deny", "allowlist", "full"),
    "execAsk": _one_of("off", "on-miss", "always"),
    "execNode": _text(LABEL),
    "subject": _text(LABEL),
    "color": _text(32),
    "icon": _text(64),
    "category": _text(LABEL),
    "spawnedBy": _text(LABEL),
    "spawnDepth": _whole,
    "lastReadAt": _whole,
    "lastRunId": _text(LABEL),
    "status": _one_of("running", "done", "failed", "killed", "timeout"),
    "abortedLastRun": _flag,
    "startedAt": _whole,
    "endedAt": _whole,
    "runtimeMs": _whole,
    "systemPromptReport": _object,
    "delivery": _object,
    "chatType": _one_of("direct", "group", "channel"),
}

NAMES = frozenset((*_FIELDS, *_EXTRA, "model"))
"""What `apply` knows; a gateway decides which of them a client may send."""


def apply(session: Session, changes: Mapping[str, Any]) -> Session:
    """`session` with `changes`; null clears. Raises UserError for an unknown name or a value that does not fit."""
    changed, extra = session, dict(session.extra)
    for name, value in changes.items():
        if name == "model":
            changed = _model(replace(changed, extra=extra), value)
            extra = dict(changed.extra)
        elif name in _FIELDS:
            field, check = _FIELDS[name]
            empty = False if field in ("archived", "pinned") else None
            change: dict[str, Any] = {field: empty if value is None else check(name, value)}
            changed = replace(changed, **change)
        elif name not in _EXTRA:
            raise UserError(f"sessions.patch: there is no {name!r} to change")
        elif value is None:
            extra.pop(name, None)
        else:
            extra[name] = _EXTRA[name](name, value)
    return replace(changed, extra=extra)


def _model(session: Session, value: Any) -> Session:
    """The model to use from now on: `provider/id`, or null for the configured one. With `@` and the id of a login
    behind it, such as `@openai:work`, that login is taken first; another login named so takes its place.
    """
    if value is None:
        return replace(session, provider_override=None, model_override=None)
    if isinstance(value, str) and (login := re.fullmatch(r"(.+)@([\w.-]+:[^/\s]+)", value.strip())):
        extra = {**session.extra, "authProfileOverride": login[2], "authProfileOverrideSource": "user"}
        return _model(replace(session, extra=extra), login[1])
    if not isinstance(value, str) or not value.strip() or len(value) > LABEL:
        raise _fail("model", "provider/model as text, or null for the configured one")
    provider, slash, model = value.strip().partition("/")
    if not slash:
        return replace(session, provider_override=None, model_override=provider)
    if not provider or not model:
        raise _fail("model", "provider/model as text, or null for the configured one")
    return replace(session, provider_override=provider, model_override=model)
