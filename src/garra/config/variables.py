"""`${NAME}` in texts, and references to secrets: where a value is only named, fetch it.

Names are `[A-Z_][A-Z0-9_]*`; `$${NAME}` is the text `${NAME}` itself. A value whose variable is unset or empty becomes
empty and is listed as missing; the text `${NAME}` never goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from garra.core.dotted import Path
from garra.core.errors import NotFound
from garra.core.patterns import later
from garra.core.secret import Secret

_USE = later(r"\$(\$?)\{([A-Z_][A-Z0-9_]*)\}")
_ASSIGNMENT = later(r"^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$")
_NAME = later(r"[A-Z_][A-Z0-9_]*")
SOURCES = ("env", "file", "exec", "store")

Reference = Callable[[str, str, str], str]
"""(source, provider or nothing, id) to the secret. Raises NotFound with a line when it cannot be had."""

Kept = Mapping[str, Secret]
"""Secrets that were fetched, by reference."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A value that could not be had: where, and what of (in one line)."""

    at: Path
    reason: str


@dataclass(slots=True)
class Substituted:
    """The tree with every value in place; a missing one is an empty text."""

    tree: Any
    missing: list[Missing] = field(default_factory=list)


def substitute(tree: Any, env: Mapping[str, str], reference: Reference) -> Substituted:
    """Put in what the environment and the secret sources hold."""
    result = Substituted(None)

    def walk(value: Any, at: Path) -> Any:
        if isinstance(value, dict):
            if is_reference(value):
                return _referred(value, at)
            return {key: walk(item, (*at, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, (*at, index)) for index, item in enumerate(value)]
        return _filled(value, at) if isinstance(value, str) and "${" in value else value

    def _referred(value: dict[str, Any], at: Path) -> str:
        try:
            return reference(str(value["source"]), str(value.get("provider") or ""), str(value["id"]))
        except NotFound as fault:
            result.missing.append(Missing(at, fault.message))
            return ""

    def _filled(text: str, at: Path) -> str:
        lacking = [name for escaped, name in _USE.findall(text) if not escaped and not env.get(name)]
        if lacking:
            names = ", ".join(f'"{name}"' for name in dict.fromkeys(lacking))
            result.missing.append(Missing(at, f"Missing env var {names}"))
            return ""
        return _USE.sub(lambda use: use.group()[1:] if use.group(1) else env[use.group(2)], text)

    result.tree = walk(tree, ())
    return result


def is_reference(value: Mapping[str, Any]) -> bool:
    """Whether an object is a reference `{source, provider?, id}` to a secret."""
    return (
        value.get("source") in SOURCES
        and isinstance(value.get("id"), str)
        and set(value) <= {"source", "provider", "id"}
    )


def listed(tree: Any, at: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every reference of a configuration, with its place."""
    if isinstance(tree, dict):
        if is_reference(tree):
            yield at, tree
            return
        for key, below in tree.items():
            yield from listed(below, (*at, key))
    elif isinstance(tree, list):
        for index, below in enumerate(tree):
            yield from listed(below, (*at, index))


def inline(tree: Any) -> dict[str, str]:
    """The variables that a configuration itself defines: `env.vars`, and names standing directly in `env`."""
    section = tree.get("env") if isinstance(tree, dict) else None
    if not isinstance(section, dict):
        return {}
    listed = section.get("vars")
    found = {**section, **(listed if isinstance(listed, dict) else {})}
    return {name: str(value) for name, value in found.items() if _NAME.fullmatch(name) and isinstance(value, str | int)}


def dotenv(text: str) -> dict[str, str]:
    """The variables of a `.env` file: `NAME=value` lines, `#` comments, values quoted or not."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _ASSIGNMENT.match(line)
        if match is None:
            continue
        name, value = match.groups()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        else:
            value = value.split(" #", 1)[0].rstrip()
        found[name] = value
    return found
