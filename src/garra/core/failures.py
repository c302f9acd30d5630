"""Why a model call failed: one table from what a server said to a `Failure`, and what may be tried again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from garra.core.errors import Failure, FailureKind, GarraError

_Kind = FailureKind

_WORDS: tuple[tuple[FailureKind, tuple[str, ...]], ...] = (
    (
        _Kind.OVERFLOW,
        (
            r"context[_ ](length|window|size|overflow)",
            r"maximum context",
            r"(prompt|input) is too long",
            r"too many (input )?tokens",
            r"exceeds? the (available|model'?s?|maximum) (context|number of tokens|input)",
            r"(input token count|(prompt|input) (length|tokens?)).{0,40}exceed",
            r"reduce the length of the (messages|input|prompt)",
            r"request_too_large",
            r"exceeded model token limit",
            r"larger than the maximum",
            r"上下文.{0,12}(超|长)",
        ),
    ),
    (
        _Kind.BILLING,
        (
            r"insufficient[_ ](quota|balance|credits?|funds)",
            r"credit balance",
            r"billing",
            r"payment required",
            r"exceeded your current quota",
            r"out of credits",
            r"arrearage",
            r"余额不足",
            r"欠费",
        ),
    ),
    (
        _Kind.FILTERED,
        (
            r"content[_ ](filter|policy|management)",
            r"safety system",
            r"data_inspection_failed",
            r"flagged by",
            r"moderation",
        ),
    ),
    (_Kind.OVERLOADED, (r"overloaded", r"(over|at|no) capacity", r"server is busy")),
    (
        _Kind.RATE_LIMIT,
        (r"rate[_ -]?limit", r"too many requests", r"(requests|tokens) per (minute|day)", r"resource_exhausted"),
    ),
    (
        _Kind.AUTH,
        (
            r"(invalid|incorrect|wrong|missing|expired|revoked|no)[_ ](api[_ ]?key|auth|credentials|x-api-key)",
            r"api[_ ]key.{0,20}(invalid|not valid|expired)",
            r"unauthorized",
            r"authentication[_ ]error",
            r"permission[_ ](error|denied)",
        ),
    ),
    (
        _Kind.NOT_FOUND,
        (
            r"model[_ ]not[_ ]found",
            r"(no such|unknown) model",
            r"model .{0,80}(not found|does not exist|not exist)",
        ),
    ),
    (_Kind.TIMEOUT, (r"timed? ?out", r"deadline exceeded")),
)
"""Patterns of the providers' own error texts, the surest first."""

_STATUS: Mapping[int, FailureKind] = {
    400: _Kind.REFUSED,
    401: _Kind.AUTH,
    402: _Kind.BILLING,
    403: _Kind.AUTH,
    404: _Kind.NOT_FOUND,
    405: _Kind.NOT_FOUND,
    408: _Kind.TIMEOUT,
    413: _Kind.OVERFLOW,
    422: _Kind.REFUSED,
    429: _Kind.RATE_LIMIT,
    503: _Kind.OVERLOADED,
    504: _Kind.TIMEOUT,
    524: _Kind.TIMEOUT,
    529: _Kind.OVERLOADED,
}

_BELIEVED: Mapping[FailureKind, frozenset[FailureKind]] = {
    _Kind.REFUSED: frozenset({_Kind.OVERFLOW, _Kind.BILLING, _Kind.FILTERED, _Kind.AUTH, _Kind.NOT_FOUND}),
    _Kind.AUTH: frozenset({_Kind.BILLING, _Kind.FILTERED}),
    _Kind.RATE_LIMIT: frozenset({_Kind.BILLING, _Kind.OVERLOADED, _Kind.OVERFLOW}),
    _Kind.SERVER: frozenset({_Kind.OVERLOADED, _Kind.TIMEOUT, _Kind.OVERFLOW, _Kind.RATE_LIMIT}),
    _Kind.UNKNOWN: frozenset(_Kind),
}
"""Which words may overrule a status: a 500 that says "overloaded" is that, a 404 that says "billing" is not."""

_ADVICE: Mapping[FailureKind, str] = {
    _Kind.AUTH: "check the key",
    _Kind.BILLING: "the account has no credit left; top it up or choose another model",
    _Kind.RATE_LIMIT: "too many requests; try again later or choose another model",
    _Kind.OVERLOADED: "the provider is overloaded; try again later",
    _Kind.TIMEOUT: "it took too long; try again",
    _Kind.NETWORK: "check the address and the network",
    _Kind.NOT_FOUND: "no such model or address there; see `garra models list`",
    _Kind.OVERFLOW: "the conversation is larger than the model's window; start a new one or choose a larger model",
    _Kind.FILTERED: "the provider's content filter refused it",
    _Kind.CUT: "the connection broke before the answer was whole; try again",
    _Kind.EMPTY: "the model gave an empty answer; ask again or choose another model",
    _Kind.SERVER: "the provider has a fault; try again later",
    _Kind.REFUSED: "the provider refused the request",
}

_KEYS = r"\b(sk|pk|rk|gsk|xai|key)[-_][A-Za-z0-9_\-*.]{6,}|AIza[\w-]{10,}|\bBearer\s+\S+"


def refused(status: int, body: str, headers: Mapping[str, str] | None = None) -> Failure:
    """The failure that an error answer tells of: `body` is what the server wrote, JSON or not.

    Header names are lower case.
    """
    said, words = spoken(body)
    kind, wait = _kind(status, said + " " + words), _wait(headers or {}, body)
    return Failure(kind, line(kind, said, status, wait), status=status or None, retry_after_ms=wait)


def lost(kind: FailureKind, said: str = "") -> Failure:
    """The failure of a call that ended without an error answer: no connection, a cut stream, a timer."""
    return Failure(kind, line(kind, said))


def gone(error: GarraError) -> Failure:
    """The failure of a call whose connection failed: what the HTTP door said."""
    kind = (error.details or {}).get("kind")
    known = {"timeout": _Kind.TIMEOUT, "cut": _Kind.CUT, "refused": _Kind.REFUSED, "limit": _Kind.SERVER}
    return lost(known.get(str(kind), _Kind.NETWORK), error.message)


def of(failure: Failure, provider: str, model: str) -> Failure:
    """The same failure, said of one model."""
    where = f"{provider}/{model}: "
    message = failure.message if failure.message.startswith(where) else where + failure.message
    return replace(failure, message=message, provider=provider, model=model)


def line(kind: FailureKind, said: str = "", status: int | None = None, wait_ms: int | None = None) -> str:
    """One line for a person: what to do about `kind`, when, and what the server said, without secrets."""
    words = re.sub(_KEYS, "[key]", " ".join(said.split()), flags=re.I)[:300]
    code = f"HTTP {status}" if status else ""
    detail = ": ".join(part for part in (code, words) if part)
    advice = _ADVICE.get(kind, "the call failed")
    if wait_ms:
        advice = advice.replace("again later", f"again in {math.ceil(wait_ms / 1_000)} s")
    return f"{advice} ({detail})" if detail else advice


def timed(failure: Failure) -> Failure:
    """The same failure with the time at which another try makes sense in its line, where that is known."""
    wait = failure.retry_after_ms
    if not wait or re.search(r"\bin \d", failure.message):
        return failure
    words = f"in {span(wait)}"
    if "again later" in failure.message:
        return replace(failure, message=failure.message.replace("again later", f"again {words}", 1))
    return replace(failure, message=f"{failure.message} (try again {words})")


def span(wait_ms: int) -> str:
    """A wait in words: 30 s, 5 min, 2 h."""
    seconds = max(1, math.ceil(wait_ms / 1_000))
    if seconds < 120:
        return f"{seconds} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{math.ceil(minutes / 60)} h"


def spoken(body: str) -> tuple[str, str]:
    """What an error body says to a person, and the words by which programs tell kinds apart."""
    try:
        found = json.loads(body)
    except ValueError:
        page = body.lstrip()[:1] == "<"
        return ("" if page else body[:600]), ("" if page else body[:2_000])
    return _told(found), json.dumps(found, ensure_ascii=False)[:4_000]


def _told(found: Any) -> str:
    """The message of the usual shapes: {error:{message}}, {error:"…"}, {message}, {detail}, [ … ]."""
    if isinstance(found, list):
        return _told(found[0]) if found else ""
    if isinstance(found, Mapping):
        inner = next((found[key] for key in ("error", "message", "detail", "msg", "errors") if found.get(key)), "")
        return _told(inner)
    return str(found) if isinstance(found, str | int) else ""


def _kind(status: int, words: str) -> FailureKind:
    plain = _STATUS.get(status, _Kind.SERVER if status >= 500 else _Kind.UNKNOWN if status < 400 else _Kind.REFUSED)
    believed = _BELIEVED.get(plain, frozenset())
    spoken_of = next((kind for kind, patterns in _WORDS if kind in believed and _says(words, patterns)), None)
    return spoken_of or (_Kind.SERVER if plain is _Kind.UNKNOWN else plain)


def _says(words: str, patterns: tuple[str, ...]) -> bool:
    return re.search("|".join(patterns), words, re.I) is not None


_AFTER = r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"|try again in (\d+(?:\.\d+)?)\s*(ms|s)\b'


def _wait(headers: Mapping[str, str], body: str) -> int | None:
    """How long the server asks to wait: `retry-after-ms`, `retry-after` in seconds, or its words."""
    for name, factor in (("retry-after-ms", 1.0), ("retry-after", 1_000.0)):
        value = headers.get(name, "")
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return int(float(value) * factor)
    found = re.search(_AFTER, body, re.I)
    if found is None:
        return None
    return int(float(found[1] or found[2]) * (1.0 if (found[3] or "").lower() == "ms" else 1_000.0))
