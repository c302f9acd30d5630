"""A look at the configuration without its types, for programs that only need an address and a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyjson5

from garra.config.paths import Paths


def peek(paths: Paths, env: Mapping[str, str]) -> dict[str, Any]:
    """The configuration as plain values, included and substituted; empty when the file is absent or broken."""
    try:
        found = pyjson5.decode(paths.config_file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
