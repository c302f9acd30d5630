"""Which commands may run on a host unasked: the document of approvals, as values.

    {version: 1,
     defaults: {security, ask, askFallback},
     agents: {<id or *>: {security, ask, askFallback, allowlist: [{id, pattern, argPattern, cwd, expiresAt, …}]}}}

`cwd` (a real folder) and `expiresAt` (milliseconds) narrow an entry; all else is as the original writes it. What the
document does not name it leaves to others. A value that nobody knows is read as the closed one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Literal, cast

from garra.core.errors import UserError
from garra.core.patterns import later
from garra.core.value import frozen

Security = Literal["deny", "allowlist", "full"]
Ask = Literal["off", "on-miss", "always"]

SECURITY: Final[tuple[Security, ...]] = ("deny", "allowlist", "full")
"""From the strictest on."""
ASK: Final[tuple[Ask, ...]] = ("always", "on-miss", "off")
"""From the strictest on."""
MODES: Final[Mapping[str, tuple[Security, Ask]]] = {
    "deny": ("deny", "off"),
    "allowlist": ("allowlist", "off"),
    "ask": ("allowlist", "on-miss"),
    "auto": ("allowlist", "on-miss"),
    "full": ("full", "off"),
}
"""`tools.exec.mode` as security and ask."""
EXACT = "sha256:argv:"
"""How an `argPattern` begins that stands for one list of arguments."""
MATCHED = 4_096
"""Characters of arguments that a pattern is tried on; more never fit."""


@frozen
class Entry:
    """One program that may run. `pattern` is a bare name, or a glob over its resolved path (`~` is the owner's home).

    `arg_pattern` is a regular expression over the arguments joined by a space, or `EXACT` with the hash of them.
    `cwd` is the one folder it holds in, `until_ms` when it ends; empty and 0 where it holds everywhere, for good.
    """

    pattern: str
    arg_pattern: str = ""
    cwd: str = ""
    until_ms: int = 0
    id: str = ""
    source: str = ""


@frozen
class Policy:
    """What one source says of an agent's commands; None where it says nothing."""

    security: Security | None = None
    ask: Ask | None = None
    fallback: Security | None = None
    allowlist: tuple[Entry, ...] = ()


@frozen
class Rules:
    """The document."""

    defaults: Policy = Policy()
    agents: Mapping[str, Policy] = {}

    def of(self, agent_id: str) -> Policy:
        """What holds for an agent: his own words, else those for every agent (`*`), else the defaults. The entries of
        `*` hold for each agent.
        """
        found = self.defaults
        for policy in (self.agents.get("*"), self.agents.get(agent_id)):
            if policy is not None:
                found = Policy(
                    policy.security or found.security,
                    policy.ask or found.ask,
                    policy.fallback or found.fallback,
                    (*found.allowlist, *policy.allowlist),
                )
        return found


def stricter(one: Policy, other: Policy) -> Policy:
    """Both at once: of each axis the stricter word, the entries of both."""
    return Policy(
        _first(SECURITY, one.security, other.security),
        _first(ASK, one.ask, other.ask),
        _first(SECURITY, one.fallback, other.fallback),
        (*one.allowlist, *other.allowlist),
    )


def moded(mode: str | None, security: Security | None, ask: Ask | None) -> Policy:
    """What a configuration says by `mode`, by `security` and `ask`, or by both: then the stricter of each axis."""
    own = Policy(security, ask)
    if mode is None:
        return own
    of_mode = MODES.get(mode, MODES["deny"])
    return stricter(own, Policy(*of_mode))


def _first(order: Sequence[Any], one: Any, other: Any) -> Any:
    said = [word for word in (one, other) if word is not None]
    return min(said, key=order.index) if said else None


def parse(document: Mapping[str, Any]) -> Rules:
    """The document as values. Raises UserError naming the place of what is no such document."""
    if not isinstance(document, Mapping):
        raise UserError("the approvals document is no object")
    if document.get("version", 1) != 1:
        raise UserError(f"the approvals document has version {document['version']!r}; this program knows version 1")
    agents = _object(document.get("agents"), "agents")
    defaults = replace(_policy(document.get("defaults"), "defaults"), allowlist=())
    named = {name: _policy(agents[name], f"agents.{name}") for name in agents}
    if "default" in named:  # so the original once called its first agent
        named.setdefault("main", named.pop("default"))
    return Rules(defaults, named)


def _object(value: Any, at: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UserError(f"the approvals document: {at} is no object")
    return value


def _policy(value: Any, at: str) -> Policy:
    given = _object(value, at)
    entries = given.get("allowlist") or []
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise UserError(f"the approvals document: {at}.allowlist is no list")
    return Policy(
        cast("Security | None", _word(given.get("security"), SECURITY, "deny")),
        cast("Ask | None", _word(given.get("ask"), ASK, "always")),
        cast("Security | None", _word(given.get("askFallback"), SECURITY, "deny")),
        tuple(_entry(entry, f"{at}.allowlist.{index}") for index, entry in enumerate(entries)),
    )


def _word(value: Any, known: Sequence[str], closed: str) -> str | None:
    return None if value is None else value if value in known else closed


def _entry(value: Any, at: str) -> Entry:
    given = {"pattern": value} if isinstance(value, str) else _object(value, at)
    texts = {name: given.get(name) or "" for name in ("pattern", "argPattern", "cwd", "id", "source")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise UserError(f"the approvals document: {at}.{name} is no text")
    until = given.get("expiresAt") or 0
    if not isinstance(until, int | float):
        raise UserError(f"the approvals document: {at}.expiresAt is no number of milliseconds")
    if not texts["pattern"].strip():
        raise UserError(f"the approvals document: {at}.pattern is missing")
    try:
        fits(texts["argPattern"], ())
    except ValueError as error:
        raise UserError(f"the approvals document: {at}.argPattern is no regular expression: {error}") from None
    return Entry(
        texts["pattern"].strip(), texts["argPattern"], texts["cwd"], int(until), texts["id"], texts["source"]
    )  # fmt: skip


def with_entry(document: Mapping[str, Any], agent_id: str, entry: Entry) -> dict[str, Any]:
    """The document with one more entry for an agent; one that says the same is replaced. Nothing else changes."""
    agents = dict(_object(document.get("agents"), "agents"))
    agent = dict(_object(agents.get(agent_id), f"agents.{agent_id}"))
    kept = [old for old in agent.get("allowlist") or () if not _same(old, entry)]
    agent["allowlist"] = [*kept, written(entry)]
    agents[agent_id] = agent
    return {"version": 1, **document, "agents": agents}


def misread(pattern: str) -> str:
    """Why a pattern would not mean what was meant by it, in words that name the way out; empty where it may."""
    words = pattern.split()
    if not words:
        return "it is empty: name a program, such as /usr/bin/rg"
    if any(letter in pattern for letter in "|;&<>$`\n"):
        return "it names one program, not a line of a shell"
    arguments = [word for word in words[1:] if word.startswith("-")]
    if len(words) > 1 and (arguments or not pattern.startswith(("/", "~"))):
        return f"it names a program alone, here {words[0]}: its arguments belong into argPattern (approvals set --file)"
    return ""


def written(entry: Entry) -> dict[str, Any]:
    """The entry as the document has it."""
    parts = {
        "id": entry.id,
        "pattern": entry.pattern,
        "argPattern": entry.arg_pattern,
        "cwd": entry.cwd,
        "expiresAt": entry.until_ms,
        "source": entry.source,
    }
    return {name: value for name, value in parts.items() if value}


def _same(old: Any, entry: Entry) -> bool:
    if not isinstance(old, Mapping):
        return False
    told = (old.get("pattern"), old.get("argPattern") or "", old.get("cwd") or "")
    return told == (entry.pattern, entry.arg_pattern, entry.cwd)


def exact(arguments: Sequence[str]) -> str:
    """The `argPattern` that stands for these very arguments (without the program)."""
    text = json.dumps(list(arguments), ensure_ascii=True, separators=(",", ":"))
    return EXACT + hashlib.sha256(text.encode()).hexdigest()


def fits(pattern: str, arguments: Sequence[str]) -> bool:
    """Whether the arguments (without the program) are what an `argPattern` allows; none allows all.

    An argument with a line break or another control character fits no expression. Raises ValueError for what is no
    regular expression.
    """
    if not pattern:
        return True
    if pattern.startswith(EXACT):
        return pattern == exact(arguments)
    found = _compiled(pattern)
    text = " ".join(arguments)
    return len(text) <= MATCHED and text.isprintable() and found.search(text) is not None


@lru_cache(512)
def _compiled(pattern: str) -> re.Pattern[str]:
    """An expression of JavaScript as one of Python's."""
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None


_PIECE: Final = later(r"\\.|\(\?<(?=[A-Za-z_])|--|[\[\]$&~|]", re.S)


def _translated(pattern: str) -> str:
    """What differs: `$` is the very end, `(?<name>` names a group, and a class holds `[`, `&&`, `||`, `~~` as plain
    characters. Raises ValueError for `--` in a class, which is nowhere clear.
    """
    inside = False

    def piece(found: re.Match[str]) -> str:
        nonlocal inside
        text = found[0]
        if text == "[":
            was, inside = inside, True
            return "\\[" if was else "["
        if text == "]":
            inside = False
            return text
        if inside:
            return _in_class(text)
        return {"$": r"\Z", "(?<": "(?P<"}.get(text, text)

    return _PIECE.sub(piece, pattern)


def _in_class(text: str) -> str:
    if text == "--":
        raise ValueError("-- in a class")
    return "\\" + text if text in {"&", "~", "|"} else text
