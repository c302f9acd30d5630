"""What in the text of plugins and skills deserves a person's look: line by line, by the patterns of patterns.toml.

It finds the careless and the usual, not the clever: that nothing was found promises nothing.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from garra.core.value import frozen

Language = Literal["python", "script", "shell", "text"]
Severity = Literal["warn", "critical"]

FILE: Final = Path(__file__).with_name("patterns.toml")
LANGUAGES: Final[Mapping[str, Language]] = {
    ".py": "python", ".pyw": "python", ".js": "script", ".mjs": "script", ".cjs": "script", ".ts": "script",
    ".mts": "script", ".cts": "script", ".tsx": "script", ".jsx": "script", ".sh": "shell", ".bash": "shell",
    ".zsh": "shell", ".command": "shell", ".ps1": "shell", ".md": "text", ".txt": "text",
}  # fmt: skip
SETS: Final[Mapping[Language, tuple[str, ...]]] = {
    "python": ("python", "any"),
    "script": ("script", "any"),
    "shell": ("shell", "any"),
    "text": ("shell", "text", "any"),
}
LINE: Final = 4_000
"""Characters that are looked at in one go; a longer line in pieces that overlap."""
OVERLAP: Final = 400
HITS: Final = 50


@frozen
class Hit:
    """One line (from 1) and what it does."""

    severity: Severity
    line: int
    what: str


@frozen
class Pattern:
    """One row of the file."""

    severity: Severity
    what: str
    fits: re.Pattern[str]


def scan(text: str, language: Language) -> tuple[Hit, ...]:
    """What is found, the first `HITS` of it."""
    found: list[Hit] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not _comment(line, language):
            pieces = [line[start : start + LINE] for start in range(0, max(len(line), 1), LINE - OVERLAP)]
            fitting = [one for one in _of(language) if any(map(one.fits.search, pieces))]
            found += [Hit(one.severity, number, one.what) for one in fitting]
        if len(found) >= HITS:
            break
    return tuple([*found, *_gathers(text, language)][:HITS])


def _comment(line: str, language: Language) -> bool:
    start = {"python": "#", "shell": "#", "script": "//"}.get(language)
    return start is not None and line.lstrip().startswith(start)


def _gathers(text: str, language: Language) -> Iterator[Hit]:
    rules = _told()["gathers"]
    if language in rules and re.search(rules["sends"], text) and (match := re.search(rules[language], text)):
        yield Hit("critical", text.count("\n", 0, match.start()) + 1, "gathers every variable where it also sends")


@cache
def _of(language: Language) -> tuple[Pattern, ...]:
    rows = [row for name in SETS[language] for row in _told()[name]]
    return tuple(Pattern(row["severity"], row["what"], re.compile(row["pattern"])) for row in rows)


@cache
def _told() -> Mapping[str, Any]:
    told: Mapping[str, Any] = importlib.import_module("tomllib").loads(FILE.read_text("utf-8"))
    return told
