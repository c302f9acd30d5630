"""What one life of the gateway leaves the next: STATE/restart-handoff.json links the timings before and after, and
STATE/restart-wish.json says what is wanted of a restart beyond the restart itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from garra.config.paths import Paths
from garra.io.files import atomic

KIND: Final = "gateway-restart-handoff"
VERSION: Final = 1
FRESH_MS: Final = 120_000
"""A wish older than this was for a restart that never came."""


def place(paths: Paths) -> Path:
    return paths.state / "restart-handoff.json"


def wishes(paths: Paths) -> Path:
    return paths.state / "restart-wish.json"


def read(path: Path) -> dict[str, Any]:
    """What a file of these two says; empty where there is none, or it says nothing. Blocks."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: Path, value: Mapping[str, Any]) -> None:
    """Blocks. Raises OSError."""
    atomic.write(path, json.dumps(value, indent=2).encode())


def wished(paths: Paths, now_ms: int) -> dict[str, Any]:
    """The wish for the restart at hand, taken away so that it holds once. Blocks."""
    found = read(wishes(paths))
    wishes(paths).unlink(missing_ok=True)
    at = found.get("at")
    return found if isinstance(at, int) and 0 <= now_ms - at <= FRESH_MS else {}
