"""From a plain tree to the typed configuration, with every fault named at once."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from garra.config import channel_keys
from garra.config.issue import Issue, issue
from garra.config.sections import Config, lookup, quick
from garra.config.sections.lookup import Odd
from garra.config.variables import Missing
from garra.core.dotted import Path
from garra.core.redact import hidden
from garra.core.secret import Secret
from garra.core.value import frozen

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

UNAVAILABLE = "feature using this value will be unavailable"
BUNDLED = FilePath(__file__).resolve().parents[1] / "builtin" / "providers"
SEARCHERS = FilePath(__file__).resolve().parents[1] / "builtin" / "search"
NAMED = FilePath(__file__).with_name("providers.toml")
_ROUNDS = 3
_LIKE = 0.75
_WANTED = {"a valid tuple": "a list", "a valid dictionary": "an object", "a valid string": "text"}
"""The library's words for kinds of values, and those of a configuration file."""


@frozen
class Checked:
    """The typed configuration, or None and the issues why not."""

    config: Config | None
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]


def check(resolved: dict[str, Any], missing: tuple[Missing, ...] = ()) -> Checked:
    """Validate. An unknown choice on which safety depends is read as the closed one, with a warning."""
    warnings = [issue(lack.at, f"{lack.reason} - {UNAVAILABLE}") for lack in missing]
    warnings += strange(unknown(resolved))
    warnings += _nobody(resolved)
    warnings += channel_keys.misfits(resolved, {lack.at for lack in missing})
    tree = _marked(resolved, missing)
    issues = list(_undeclared(resolved))
    config: Config | None = None
    for _ in range(_ROUNDS):
        config, errors = quick.checked(Config, tree)
        if config is not None:
            break
        faults = [(_place(tree, error), error) for error in errors]
        closed = {at: (mark, error) for at, error in faults if (mark := lookup.place(at).closed) is not None}
        for at, (mark, error) in closed.items():
            warnings.append(_closed(tree, at, f"read as '{mark}', the closed choice", error))
            tree = _put(tree, at, mark)
        rest = [(at, error) for at, error in faults if at not in closed]
        if rest or not closed:
            issues += _issues(tree, rest)
            break
    issues += _conflicts(config) if config is not None else ()
    return Checked(None if issues else config, tuple(issues), tuple(warnings))


def unknown(resolved: Any) -> Iterator[Odd]:
    """Every key that nobody names."""
    yield from lookup.unknown(resolved)
    yield from channel_keys.unknown(resolved)


def strange(found: Iterable[Odd]) -> Iterator[Issue]:
    """What is said of keys that nobody names; nothing of one that may well be somebody else's."""
    for odd in found:
        close = importlib.import_module("difflib").get_close_matches(str(odd.at[-1]), odd.names, 1, _LIKE)
        if odd.sure or close:
            hint = f'; did you mean "{close[0]}"?' if close else ""
            yield issue(odd.at, f'Unrecognized key: "{odd.at[-1]}" (kept, not used{hint})')


def _closed(tree: Any, at: Path, instead: str, error: ErrorDetails) -> Issue:
    allowed = _allowed(error)
    which = f" (allowed: {_listed(allowed)})" if allowed else ""
    message = f"unknown value {_shown(tree, at)}{which}; {instead}"
    return issue(at, message, allowed, wrong=True)


def _allowed(error: ErrorDetails) -> tuple[str, ...]:
    """The values that would do, where only some do."""
    if error["type"] != "literal_error":
        return ()
    return tuple(part.strip("'") for part in str(error["ctx"]["expected"]).replace(" or ", ", ").split(", "))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _marked(resolved: dict[str, Any], missing: tuple[Missing, ...]) -> Any:
    """The tree to validate: a missing secret is a typed one, another missing value is as if it were not written."""
    tree: Any = resolved
    for lack in missing:
        found = lookup.place(lack.at)
        if found.secret:
            tree = _put(tree, lack.at, Secret("", missing=f"{_dotted(lack.at)}: {lack.reason}"))
        elif not found.required and not found.free and isinstance(lack.at[-1], str):
            tree = _without(tree, lack.at)
    return tree


def _dotted(at: Path) -> str:
    return issue(at, "").path


def _put(tree: Any, at: Path, value: Any) -> Any:
    """A copy with another value at a place that exists."""
    if not at:
        return value
    changed = copy.copy(tree)
    changed[at[0]] = _put(tree[at[0]], at[1:], value)
    return changed


def _without(tree: Any, at: Path) -> Any:
    changed = copy.copy(tree)
    if len(at) == 1:
        del changed[at[0]]
    else:
        changed[at[0]] = _without(tree[at[0]], at[1:])
    return changed


def _undeclared(tree: dict[str, Any]) -> Iterator[Issue]:
    """Providers of one's own that do not say where they are or which models they have."""
    models = tree.get("models")
    providers = models.get("providers") if isinstance(models, dict) else None
    for name, provider in providers.items() if isinstance(providers, dict) else ():
        lacking = [key for key in ("baseUrl", "models") if isinstance(provider, dict) and not _declared(provider, key)]
        if lacking and name not in _bundled():
            for key in lacking:
                message = f"custom model providers must declare {key}; only bundled providers may go without"
                yield issue(("models", "providers", name, key), message)


def _nobody(tree: Any) -> Iterator[Issue]:
    """A searcher that nobody knows: the web is not searched then."""
    for key in ("tools", "web", "search", "provider"):
        tree = tree.get(key) if isinstance(tree, dict) else None
    known = tuple(sorted(path.stem for path in SEARCHERS.glob("*.toml"))) if isinstance(tree, str) else ()
    if known and isinstance(tree, str) and tree.strip().lower() not in ("", *known):
        message = f'no searcher is called "{tree}" (allowed: {_listed(known)}); the web is not searched'
        yield issue(("tools", "web", "search", "provider"), message, known, wrong=True)


def _declared(provider: dict[str, Any], key: str) -> bool:
    return isinstance(provider.get(key), list) if key == "models" else key in provider


def _bundled() -> frozenset[str]:
    """The providers in the box, and those that OpenClaw has there."""
    named = importlib.import_module("tomllib").loads(NAMED.read_text())["names"]
    return frozenset(path.stem for path in BUNDLED.glob("*.toml")).union(named)


def _conflicts(config: Config) -> Iterator[Issue]:
    """What each field allows but the whole does not."""
    seen: set[str] = set()
    for index, agent in enumerate(config.agents.listed):
        if not agent.id:
            yield issue(("agents", "list", index, "id"), "Invalid input: expected text, received nothing")
        elif agent.id.lower() in seen:
            yield issue(("agents", "list", index, "id"), f'the agent "{agent.id}" is declared twice')
        seen.add(agent.id.lower())
    for key in config.agents.entries:
        if key.lower() in seen:
            yield issue(("agents", "entries", key), f'the agent "{key}" is declared twice')
        seen.add(key.lower())


def _place(tree: Any, error: ErrorDetails) -> Path:
    """Where an error is in the file: pydantic's own words for branches of a choice are left out."""
    at: list[str | int] = []
    value: Any = tree
    for part in error["loc"]:
        if isinstance(value, dict) and (part in value or error["type"] == "missing"):
            at.append(part)
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            at.append(part)
            value = value[part]
    return tuple(at)


def _issues(tree: Any, faults: list[tuple[Path, ErrorDetails]]) -> Iterator[Issue]:
    """One issue a place: of a choice between kinds, the last word counts."""
    for at, error in dict(faults).items():
        yield _issue(tree, at, error)


def _issue(tree: Any, at: Path, error: ErrorDetails) -> Issue:
    kind = error["type"]
    if kind == "missing":
        return issue(at, "Invalid input: required, received nothing")
    if kind == "literal_error":
        allowed = _allowed(error)
        return issue(at, f"Invalid input (allowed: {_listed(allowed)}), got: {_shown(tree, at)}", allowed)
    message = error["msg"].removeprefix("Input should be ").split(", unable to")[0]
    message = _WANTED.get(message, message)
    received = _kind(error["input"])
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal") and not _secret(at):
        received = str(error["input"])
    return issue(at, f"Invalid input: expected {message}, received {received}")


def _secret(at: Path) -> bool:
    return hidden(at, lookup.secret_at)


def _shown(tree: Any, at: Path) -> str:
    """A value as it may be shown: short, and no secret."""
    value = tree
    for part in at:
        value = value[part]
    if _secret(at) or not isinstance(value, str | int | float | bool):
        return _kind(value)
    return f'"{value[:60]}"' if isinstance(value, str) else str(value)


def _kind(value: Any) -> str:
    kinds = {str: "text", bool: "true or false", int: "a number", float: "a number", dict: "an object", list: "a list"}
    return "null" if value is None else kinds.get(type(value), "something else")
