"""Large sets of tools: which are told to a model in full, which by name only, and how it finds one of those.

What is deferred stays callable under the very policy it has; only its description waits until it is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from garra.core.patterns import later
from garra.core.value import frozen

SEARCH, DESCRIBE, CALL = "tool_search", "tool_describe", "tool_call"
CONTROLS: Final = (SEARCH, DESCRIBE, CALL)

DIRECT: Final = ("read", "write", "edit", "ls", "grep", "exec", "process", "web_search", "web_fetch")
"""What is always told in full: a model reaches for it in most turns."""

ROOM: Final = 4_200
"""Bytes of tools, as JSON, up to which all are told in full."""

WAY: Final = 600
"""Bytes that the way to deferred tools costs: fewer saved, and all are told in full."""

NAMED: Final = 900
"""Characters of names in the description of `tool_search`; more are found, and not named."""

SIGNATURE: Final = 300
"""Characters of a tool's arguments in a hit."""


@frozen
class Settings:
    """`on` None: where the set is larger than `room` bytes. `direct` are told in full too; `limit` hits are given where
    nobody says how many, `most` at most.
    """

    on: bool | None = None
    room: int = ROOM
    direct: tuple[str, ...] = ()
    limit: int = 8
    most: int = 20


@frozen
class Entry:
    """One tool as it is looked for; `source` says where it comes from."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    source: str = ""


def deferred(sizes: Mapping[str, int], settings: Settings) -> tuple[str, ...]:
    """Which of these tools (bytes by name) are told by name only; none where that would not make the set smaller."""
    if settings.on is False or (settings.on is None and sum(sizes.values()) <= settings.room):
        return ()
    kept = {*DIRECT, *settings.direct}
    found = tuple(name for name in sizes if name not in kept)
    return found if sum(sizes[name] for name in found) > WAY else ()


def listed(names: Iterable[str]) -> str:
    """Names in a line for a description, as many as there is room for."""
    text = ""
    ordered = sorted(names)
    for at, name in enumerate(ordered):
        longer = f"{text}, {name}" if text else name
        if len(longer) > NAMED:
            return f"{text} and {len(ordered) - at} more"
        text = longer
    return text


_WORD = later(r"[^\W_]+")
_CAMEL = later(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDINGS = ("ations", "ation", "ions", "ion", "ings", "ing", "ies", "ers", "ed", "es", "er", "s", "y", "e")
_MEANT: Mapping[str, tuple[str, ...]] = {
    "price": ("web", "search"), "weather": ("web", "search"), "news": ("web", "search"), "internet": ("web",),
    "website": ("web", "browser"), "url": ("web", "fetch"), "page": ("web", "browser"), "chat": ("message",),
    "text": ("message",), "notify": ("message",), "send": ("message",), "reply": ("message",), "react": ("message",),
    "remind": ("automations", "schedule"), "schedule": ("automations",), "cron": ("automations",),
    "remember": ("memory",), "question": ("ask",), "confirm": ("ask",), "settings": ("gateway", "config"),
    "config": ("gateway",), "configuration": ("gateway", "config"), "agent": ("agents", "sessions", "spawn"),
    "delegate": ("spawn", "sessions"), "helper": ("spawn",), "conversation": ("sessions",), "history": ("sessions",),
    "photo": ("image",), "picture": ("image",), "document": ("pdf",), "patch": ("apply",), "model": ("status",),
}  # fmt: skip
"""What people say, and the words of the tools they mean."""


def terms(text: str) -> tuple[str, ...]:
    """The words of a text as they are compared: small, without endings, names in their parts."""
    return tuple(_stem(word.lower()) for word in _WORD.findall(_CAMEL.sub(" ", text)))


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def search(query: str, entries: Sequence[Entry], limit: int) -> tuple[Entry, ...]:
    """Those that fit best, best first (Okapi BM25 over names, descriptions and arguments). A whole name comes first."""
    asked = query.strip().lower()
    wanted = set(terms(query))
    near = {_stem(word) for term in _WORD.findall(asked) for word in _MEANT.get(term, ())} - wanted
    texts = [_weighed(entry) for entry in entries]
    usual = sum(map(len, texts)) / len(texts) if texts else 1.0
    scored = []
    for at, (entry, text) in enumerate(zip(entries, texts, strict=True)):
        score = sum(_score(term, text, texts, usual) for term in wanted)
        score += sum(_score(term, text, texts, usual) for term in near) / 2
        if entry.name.lower() == asked:
            score += 1_000
        if score > 0:
            scored.append((-score, at, entry))
    return tuple(entry for _, _, entry in sorted(scored, key=lambda each: each[:2])[:limit])


def _weighed(entry: Entry) -> tuple[str, ...]:
    """The words a tool is found by; its name counts three times."""
    return (*terms(entry.name) * 3, *terms(entry.description), *terms(" ".join(_arguments(entry.parameters))))


def _arguments(parameters: Mapping[str, Any]) -> Iterable[str]:
    for name, part in (parameters.get("properties") or {}).items():
        yield str(name)
        if isinstance(part, Mapping):
            yield str(part.get("description", ""))
            yield from (str(value) for value in part.get("enum") or ())


def _score(term: str, text: Sequence[str], texts: Sequence[Collection[str]], usual: float) -> float:
    count = text.count(term)
    if not count:
        return 0.0
    holding = sum(term in other for other in texts)
    rarity = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
    return rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(text) / usual))


def signature(parameters: Mapping[str, Any]) -> str:
    """A tool's arguments in a line: `{ query: string; limit?: integer }`; cut where there are many."""
    required = parameters.get("required") or ()
    parts = [
        f"{name}{'' if name in required else '?'}: {_kind(part)}"
        for name, part in (parameters.get("properties") or {}).items()
    ]
    text = "{ " + "; ".join(parts) + " }" if parts else "{}"
    return text if len(text) <= SIGNATURE else text[: SIGNATURE - 3] + "…}"


def _kind(part: Any) -> str:
    if not isinstance(part, Mapping):
        return "any"
    if values := part.get("enum"):
        return " | ".join(f'"{value}"' for value in values)
    kind = part.get("type", "any")
    if kind == "array":
        return f"{_kind(part.get('items'))}[]"
    return " | ".join(kind) if isinstance(kind, list) else str(kind)


def target(arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Which tool a `tool_call` means, and with what; arguments that stand beside `id` are taken as they are meant."""
    inner = arguments.get("args")
    if isinstance(inner, Mapping):
        return str(arguments.get("id", "")), inner
    flat = {name: value for name, value in arguments.items() if name not in ("id", "args")}
    return str(arguments.get("id", "")), flat
