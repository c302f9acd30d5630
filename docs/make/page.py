"""Small pieces of Markdown that the generated pages are put together of."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def cell(text: object) -> str:
    """Text of a table's cell: one line, no bar."""
    return re.sub(r"\s+", " ", str(text)).strip().replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; empty text without rows."""
    body = [f"| {' | '.join(map(cell, row))} |" for row in rows]
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |", *body]
    return "\n".join(lines) if body else ""


def join(*parts: str) -> str:
    """A page of its parts, without those that are empty."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def docstring(text: str | None) -> str:
    """A docstring without its indent; what is indented in it is code."""
    lines = inspect.cleandoc(text or "").splitlines()
    found: list[str] = []
    for at, line in enumerate(lines):
        inside = line.startswith("    ")
        if inside != (at > 0 and lines[at - 1].startswith("    ")) and (inside or line):
            found.append("```text" if inside else "```")
        found.append(line[4:] if inside else line)
    return "\n".join([*found, "```"] if lines and lines[-1].startswith("    ") else found)


def first(text: str | None) -> str:
    """The first paragraph of a docstring as one line."""
    return re.sub(r"\s+", " ", (text or "").strip().split("\n\n")[0])
