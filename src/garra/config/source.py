"""The part of loading that needs no types: read, include, bring up to date, look up variables. `peek` shares it."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from garra.config import include, variables
from garra.config.issue import Issue
from garra.config.migrate import migrate
from garra.config.paths import Paths
from garra.config.variables import Kept, Missing
from garra.core.errors import NotFound, Unavailable
from garra.core.secret import Bound
from garra.io.env import Environment
from garra.io.files import atomic

if TYPE_CHECKING:
    from garra.config.references import References


@dataclass(frozen=True, slots=True)
class Source:
    """A configuration's text and what it comes to; with an issue, `resolved` is not to be relied on.

    `parsed` is the file as written, `merged` after includes, `resolved` in today's words and after variables too.
    """

    raw: str
    exists: bool
    parsed: dict[str, Any] = field(default_factory=dict)
    merged: dict[str, Any] = field(default_factory=dict)
    resolved: dict[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    notes: tuple[Issue, ...] = ()
    issues: tuple[Issue, ...] = ()
    env: Environment = field(default_factory=lambda: Environment({}))
    secrets: Kept = field(default_factory=dict)
    bound: tuple[Bound, ...] = ()


def digest(raw: str) -> str:
    """The hash by which a configuration file's content is known: SHA-256 in hex."""
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()


def read(paths: Paths, env: Environment, *, former: Kept | None = None, deep: bool = True) -> Source:
    """The configuration file as it is now; `former` and `deep` are those of `References`."""
    try:
        raw = atomic.read(paths.config_file)
    except FileNotFoundError:
        return Source("", exists=False, env=_environment(paths, env, {}))
    except Unavailable as fault:
        return Source("", exists=True, issues=(Issue("", fault.message),), env=env)
    return interpret(raw, paths, env, former=former, deep=deep)


def last_good(paths: Paths, env: Environment, *, former: Kept | None = None, deep: bool = True) -> Source | None:
    """The last text that was valid, with the includes of that time; None when there is none to be had."""
    try:
        text = atomic.read(paths.last_good)
        return interpret(text, paths, env, kept=kept_files(paths), former=former, deep=deep)
    except (FileNotFoundError, Unavailable):
        return None


def kept_files(paths: Paths) -> dict[str, str]:
    """The included files' texts that belong to the last good one."""
    try:
        found = json.loads(atomic.read(includes(paths)))
    except (FileNotFoundError, Unavailable, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def includes(paths: Paths) -> FilePath:
    """Where `kept_files` are kept."""
    return paths.last_good.with_name(paths.last_good.name + ".includes")


def interpret(
    raw: str,
    paths: Paths,
    env: Environment,
    kept: Mapping[str, str] | None = None,
    *,
    former: Kept | None = None,
    deep: bool = True,
) -> Source:
    """What a text would come to in the configuration file's place; `kept` replaces included files' texts."""
    if not raw.strip():  # a truncated file, not a wish: whoever wants the defaults writes {} or removes it
        return Source(raw, exists=True, issues=(Issue("", "the file is empty; an empty configuration is {}"),), env=env)
    try:
        parsed = include.decode(raw)
    except include.Unreadable as fault:
        return Source(raw, exists=True, issues=(Issue("", fault.message, line=fault.line),), env=env)
    if not isinstance(parsed, dict):
        return Source(raw, exists=True, issues=(Issue("", "the file must hold one object: { … }"),), env=env)
    included = include.expand(parsed, paths.config_file, _roots(paths, env), kept)
    if not isinstance(included.tree, dict):
        return Source(raw, exists=True, issues=(Issue("", "the included file must hold one object: { … }"),), env=env)
    whole = _environment(paths, env, included.tree)
    today = migrate(included.tree)
    references = _references(paths, whole, today.tree, former=former, deep=deep)
    found = variables.substitute(today.tree, whole, references.look if references else _nowhere)
    return Source(
        raw,
        exists=True,
        parsed=parsed,
        merged=included.tree,
        resolved=found.tree,
        files=included.files,
        missing=tuple(found.missing),
        notes=(*today.notes, *(Issue("secrets", line) for line in (references.stale if references else ()))),
        issues=tuple(included.issues),
        env=whole,
        secrets=references.secrets() if references else {},
        bound=references.bound() if references else (),
    )


def _references(paths: Paths, env: Environment, tree: Any, *, former: Kept | None, deep: bool) -> References | None:
    """What fetches secrets; None, and nothing of it is loaded, where nothing is referred to and there is no store."""
    if next(variables.listed(tree), None) is None and not paths.secrets.exists():
        return None
    made: References = importlib.import_module("garra.config.references").References(
        paths, env, tree, former=former, deep=deep
    )
    return made


def _nowhere(source: str, provider: str, name: str) -> str:
    raise NotFound(f"{source}:{provider}:{name} is no reference")


def _roots(paths: Paths, env: Environment) -> tuple[FilePath, ...]:
    return tuple(FilePath(root) for root in paths.variable(env, "INCLUDE_ROOTS").split(":") if root.startswith("/"))


def _environment(paths: Paths, env: Environment, tree: Any) -> Environment:
    """The process's variables, then those of STATE/.env, then those of the configuration itself."""
    try:
        text = atomic.read(paths.state / ".env", 1 << 20)
    except (FileNotFoundError, Unavailable):
        text = ""
    return env.beneath(variables.dotenv(text)).beneath(variables.inline(tree))
