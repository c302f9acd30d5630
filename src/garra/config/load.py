"""From the file to a typed snapshot: read, include, update, substitute, validate. Bad content is a state, no error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal

from garra.config import source
from garra.config.issue import Issue
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.config.source import Source, digest, read
from garra.config.validate import check
from garra.config.variables import Kept
from garra.core import json5
from garra.core.errors import Unavailable
from garra.core.redact import SENTINEL
from garra.core.secret import Bound
from garra.core.value import frozen
from garra.io.env import Environment
from garra.io.files import atomic

__all__ = ["Issue", "Snapshot", "digest", "keep", "last_good", "load", "snapshot_of"]


@frozen
class Snapshot:
    """The configuration as it was at one moment.

    `config` always serves: from the file when that is `valid`, else from the last good one, else the defaults
    (`source` says which). `raw` is the file's text and `hash` its SHA-256 in hex, also when the file is broken;
    `parsed` is the file as written, `merged` after includes, `resolved` in today's words and after variables too;
    `included` names the further files that were read (`files` their texts); `env` holds the process's variables with
    those of `.env` and `env.vars` beneath; `secrets` what its references were fetched as, and what the store holds,
    `bound` those of them that may go to named hosts only.
    """

    config: Config
    valid: bool
    exists: bool
    source: Literal["file", "last-good", "defaults"]
    raw: str
    hash: str
    parsed: dict[str, Any]
    merged: dict[str, Any]
    resolved: dict[str, Any]
    issues: tuple[Issue, ...] = ()
    warnings: tuple[Issue, ...] = ()
    included: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    env: Environment = field(default_factory=lambda: Environment({}))
    secrets: Kept = field(default_factory=dict)
    bound: tuple[Bound, ...] = ()


def load(paths: Paths, env: Mapping[str, str], former: Kept | None = None) -> Snapshot:
    """Read the configuration. Never raises for bad content: then the last good one serves, and `issues` say why.

    A reference to a secret that cannot be fetched now is what `former` (`Snapshot.secrets`) says it was.
    """
    environment = env if isinstance(env, Environment) else Environment(env)
    found = snapshot_of(read(paths, environment, former=former))
    if found.valid:
        return found
    good = last_good(paths, environment, former)
    return (
        replace(found, config=good.config, env=good.env, secrets=good.secrets, bound=good.bound, source="last-good")
        if good is not None
        else found
    )


def snapshot_of(text: Source) -> Snapshot:
    """What one text comes to, by itself; the defaults when it is not valid."""
    checked = check(text.resolved, text.missing) if not text.issues else None
    config = checked.config if checked is not None else None
    issues = (*text.issues, *(checked.issues if checked is not None else ()))
    warnings = (*text.notes, *(checked.warnings if checked is not None else ()))
    return Snapshot(
        config=config if config is not None else Config(),
        valid=config is not None,
        exists=text.exists,
        source="file" if config is not None and text.exists else "defaults",
        raw=text.raw,
        hash=digest(text.raw),
        parsed=text.parsed,
        merged=text.merged,
        resolved=text.resolved,
        issues=_placed(text, issues),
        warnings=_placed(text, warnings),
        included=tuple(text.files),
        files=text.files,
        env=text.env,
        secrets=text.secrets,
        bound=text.bound,
    )


def _placed(text: Source, issues: tuple[Issue, ...]) -> tuple[Issue, ...]:
    """The issues with their lines in the main file."""
    if not text.parsed or not any(found.at and not found.line for found in issues):
        return issues
    try:
        root = json5.parse(text.raw)
    except json5.Broken:  # a leniency of the fast parser: no lines then
        return issues
    return tuple(
        replace(found, line=json5.line_of(text.raw, root, found.at)) if found.at and not found.line else found
        for found in issues
    )


def last_good(paths: Paths, env: Environment, former: Kept | None = None) -> Snapshot | None:
    """The last configuration that was valid, with the includes of that time; None when there is none to be had."""
    kept = source.last_good(paths, env, former=former)
    found = snapshot_of(kept) if kept is not None else None
    return found if found is not None and found.valid else None


def keep(paths: Paths, snapshot: Snapshot) -> None:
    """Remember a valid configuration as the last good one. Anything else is left alone, so it never displaces that."""
    if not snapshot.valid or not snapshot.exists or SENTINEL in snapshot.raw:
        return
    try:
        same = atomic.read(paths.last_good) == snapshot.raw and source.kept_files(paths) == dict(snapshot.files)
    except (FileNotFoundError, Unavailable):
        same = False
    if same:
        return
    if snapshot.files or source.includes(paths).exists():
        atomic.write(source.includes(paths), json.dumps(dict(snapshot.files)).encode())
    atomic.write(paths.last_good, snapshot.raw.encode())
