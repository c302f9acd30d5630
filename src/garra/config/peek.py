"""A look at the configuration without its types, for programs that only need an address and a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.config import source
from garra.config.paths import Paths
from garra.io.env import Environment


def peek(paths: Paths, env: Mapping[str, str]) -> dict[str, Any]:
    """The configuration as plain values, included and substituted; empty when the file is absent or broken."""
    found = source.read(paths, env if isinstance(env, Environment) else Environment(env))
    return {} if found.issues else found.resolved
