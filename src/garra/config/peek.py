"""A look at the configuration without its types, for programs that only need an address and a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.config import source
from garra.config.paths import Paths
from garra.io.env import Environment


def peek(paths: Paths, env: Mapping[str, str]) -> dict[str, Any]:
    """The configuration as plain values, included and substituted; empty when the file is absent.

    When it is broken, the last good one: that is what a running gateway serves on.
    """
    return look(paths, env)[0]


def look(paths: Paths, env: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """What `peek` gives, and in one line what is wrong with the file; empty when it can be read."""
    environment = env if isinstance(env, Environment) else Environment(env)
    found = source.read(paths, environment, deep=False)
    if not found.issues:
        return found.resolved, ""
    kept = source.last_good(paths, environment, deep=False)
    return {} if kept is None or kept.issues else kept.resolved, str(found.issues[0])
