"""Whether a text is a document of exec approvals: every fault, a line each, with its place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from garra.core.errors import UserError
from garra.core.execrules import ASK, SECURITY, fits

EMPTY: Final[Mapping[str, Any]] = {"version": 1, "defaults": {}, "agents": {}}
WORDS: Final[Mapping[str, Sequence[str]]] = {"security": SECURITY, "ask": tuple(reversed(ASK)), "askFallback": SECURITY}
MOST: Final = 20
"""Faults that are told at once."""


def check(document: Any) -> dict[str, Any]:
    """The document, as it may be stored. Raises UserError with a line for each fault."""
    found = list(faults(document))
    if not found:
        return {**EMPTY, **document}
    shown = found[:MOST] + ([f"and {len(found) - MOST} more"] if len(found) > MOST else [])
    raise UserError("\n".join(shown), details={"issues": shown})


def faults(document: Any) -> Iterator[str]:
    """What is wrong with it."""
    if not isinstance(document, Mapping):
        yield "the document is no object: {version: 1, defaults: {}, agents: {}}"
        return
    if document.get("version", 1) != 1:
        yield f"version: {document['version']!r} is not 1"
    yield from _policy(document.get("defaults"), "defaults")
    agents = document.get("agents")
    if agents is not None and not isinstance(agents, Mapping):
        yield "agents: it is no object of agents by their id"
        return
    for name, agent in (agents or {}).items():
        yield from _policy(agent, f"agents.{name}")


def _policy(value: Any, at: str) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, Mapping):
        yield f"{at}: it is no object"
        return
    for key, words in WORDS.items():
        if value.get(key) is not None and value[key] not in words:
            yield f"{at}.{key}: {value[key]!r} is none of {', '.join(words)}"
    entries = value.get("allowlist")
    if entries is not None and (not isinstance(entries, Sequence) or isinstance(entries, str)):
        yield f"{at}.allowlist: it is no list"
        return
    for index, entry in enumerate(entries or ()):
        yield from _entry(entry, f"{at}.allowlist.{index}")


def _entry(value: Any, at: str) -> Iterator[str]:
    entry = {"pattern": value} if isinstance(value, str) else value
    if not isinstance(entry, Mapping):
        yield f"{at}: it is neither a pattern nor an object with one"
        return
    pattern, arguments = entry.get("pattern"), entry.get("argPattern")
    if not isinstance(pattern, str) or not pattern.strip():
        yield f"{at}.pattern: a program's path or a pattern of paths is missing"
    if arguments is not None and not isinstance(arguments, str):
        yield f"{at}.argPattern: it is no text"
    elif arguments:
        yield from _expression(arguments, f"{at}.argPattern")
    if not isinstance(entry.get("cwd") or "", str):
        yield f"{at}.cwd: it is no text"
    until = entry.get("expiresAt") or 0
    if isinstance(until, bool) or not isinstance(until, int | float):
        yield f"{at}.expiresAt: it is no number of milliseconds"


def _expression(pattern: str, at: str) -> Iterator[str]:
    try:
        fits(pattern, ())
    except ValueError as error:
        yield f"{at}: it is no regular expression: {error}"


def digest(document: Mapping[str, Any]) -> str:
    """The hash a change names, so that it changes what its maker saw."""
    text = json.dumps(document, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
