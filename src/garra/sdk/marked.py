"""Marks as they come with an answer of the gateway's, and as they go there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.core.taint import META, Mark, Marks, of, stored


def marks(answer: Mapping[str, Any]) -> tuple[Mark, ...]:
    """What of an answer is text from outside."""
    return of({META: answer["marks"]}) if answer.get("marks") else ()


def told(found: Marks) -> list[dict[str, str]]:
    """What a turn has read, for who goes on with it."""
    rows: list[dict[str, str]] = stored(found.named).get(META, [])
    return rows
