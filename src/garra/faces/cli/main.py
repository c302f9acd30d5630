"""The command line's front: picks the command and imports only that."""

from __future__ import annotations

from collections.abc import Sequence


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code."""
    raise SystemExit(2)
