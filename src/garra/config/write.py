"""The one writer of the configuration file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from garra.config.load import Snapshot, load
from garra.config.paths import Paths
from garra.io.env import Environment


class Writer:
    """Changes the configuration file: each change keeps comments, order and unknown keys, or does nothing."""

    def __init__(self, paths: Paths, env: Environment, written: Callable[[Snapshot], None] | None = None) -> None:
        self._paths = paths
        self._env = env
        self._written = written

    def set(self, path: str, value: Any, *, base_hash: str | None = None) -> Snapshot:
        """Put `value` at a dotted path."""
        raise NotImplementedError

    def unset(self, path: str, *, base_hash: str | None = None) -> Snapshot:
        """Remove what stands at a dotted path."""
        raise NotImplementedError

    def patch(self, merge: dict[str, Any], base_hash: str | None = None) -> Snapshot:
        """Merge into the file; `None` removes a key."""
        raise NotImplementedError

    def replace(self, raw: str, base_hash: str | None = None) -> Snapshot:
        """Put a whole new text in place."""
        raise NotImplementedError

    def restore(self) -> Snapshot:
        """Bring back the last good configuration."""
        return load(self._paths, self._env)
