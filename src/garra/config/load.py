"""From the file to a typed snapshot: read, include, substitute, migrate, validate. Bad content is a state, no error."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyjson5
from pydantic import ValidationError

from garra.config.paths import Paths
from garra.config.sections import Config
from garra.io.env import Environment


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing to say about one place: `path` is dotted, such as `models.providers.x.models[0].name`."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The configuration as it was at one moment.

    `config` always serves: from the file when that is `valid`, else from the last good one, else the defaults
    (`source` says which). `parsed` is the file as written, `resolved` is after includes and variables;
    `hash` is the SHA-256 of `raw` in hex; `included` names the further files that were read.
    """

    config: Config
    valid: bool
    exists: bool
    source: Literal["file", "last-good", "defaults"]
    raw: str
    hash: str
    parsed: dict[str, Any]
    resolved: dict[str, Any]
    issues: tuple[Issue, ...] = ()
    warnings: tuple[Issue, ...] = ()
    included: tuple[str, ...] = ()
    env: Environment = field(default_factory=lambda: Environment({}))


def digest(raw: str) -> str:
    """The hash by which a configuration file's content is known: SHA-256 in hex."""
    return hashlib.sha256(raw.encode()).hexdigest()


def load(paths: Paths, env: Mapping[str, str]) -> Snapshot:
    """Read the configuration. Never raises for bad content."""
    environment = env if isinstance(env, Environment) else Environment(env)
    try:
        raw = paths.config_file.read_text()
    except FileNotFoundError:
        return Snapshot(Config(), True, False, "defaults", "", digest(""), {}, {}, env=environment)
    try:
        parsed = pyjson5.decode(raw)
        config = Config.model_validate(parsed)
    except (ValueError, ValidationError) as fault:
        issue = Issue("", str(fault).splitlines()[0])
        return Snapshot(Config(), False, True, "defaults", raw, digest(raw), {}, {}, (issue,), env=environment)
    return Snapshot(config, True, True, "file", raw, digest(raw), parsed, parsed, env=environment)
