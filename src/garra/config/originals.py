"""Which further keys OpenClaw has where Garra's sections have theirs: kept, not used, and no cause for a warning."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("originals.toml")
MORE = "*"
"""Among the keys of a section: it may have any other, too."""
CHANNELS = Path(__file__).resolve().parents[1] / "builtin" / "channels"


def of_section(name: str) -> frozenset[str] | None:
    """The further keys of a section, by the name of its class; None where nobody has listed them."""
    return _listed()["sections"].get(name)


def of_channel(name: str) -> frozenset[str] | None:
    return _listed()["channels"].get(name)


@cache
def _listed() -> Mapping[str, Mapping[str, frozenset[str]]]:
    found = importlib.import_module("tomllib").loads(FILE.read_text("utf-8"))
    return {part: {name: frozenset(keys) for name, keys in table.items()} for part, table in found.items()}


@cache
def channel_in_the_box(name: str) -> Mapping[str, Any] | None:
    """What the manifest of a channel in the box says of its keys, each with its schema; None for another channel."""
    file = CHANNELS / name / "manifest.toml"
    if "/" in name or name in ("", ".", "..") or not file.is_file():
        return None
    found: Mapping[str, Any] = importlib.import_module("tomllib").loads(file.read_text("utf-8"))["settings"]
    return found.get("properties") or {}
