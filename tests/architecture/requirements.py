"""Keeps docs/requirements.md and the `req` marks of the tests equal.

`python -m tests.architecture.requirements` rewrites the state column: `proved` for a row with a marked test, `planned`
for one without; `partly: what is missing` is written by hand and stays while the row has a mark.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from pathlib import Path

from tests.architecture.caps import ROOT, TESTS, files

PAGE = ROOT / "docs" / "requirements.md"
_ROW = re.compile(r"^\| ([A-Z]+-\d+[a-z]?) \| (core|important|nice) \| (.*?) \| ([^|]*?) \|$")


@dataclass(frozen=True)
class Row:
    """One line of the page."""

    id: str
    priority: str
    title: str
    state: str

    def __str__(self) -> str:
        return f"| {self.id} | {self.priority} | {self.title} | {self.state} |"


def marks(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    """(line, rows) of each `req` mark in a test file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "req":
            ids = tuple(arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
            found.append((node.lineno, ids))
    return found


def marked() -> set[str]:
    return {row for path in files(TESTS) for _, ids in marks(path) for row in ids}


def rows() -> list[Row]:
    return [Row(*match.groups()) for line in PAGE.read_text().splitlines() if (match := _ROW.match(line))]


def state(row: Row, proved: set[str]) -> str:
    if row.id not in proved:
        return "planned"
    return row.state if row.state.startswith("partly: ") else "proved"


def rewritten(text: str, proved: set[str]) -> str:
    lines = []
    for line in text.splitlines():
        match = _ROW.match(line)
        row = Row(*match.groups()) if match else None
        lines.append(str(replace(row, state=state(row, proved))) if row else line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(), marked()))
