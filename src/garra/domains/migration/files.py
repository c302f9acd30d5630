"""Files of another agent program: found, and read with a bound. Blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from garra.core.migration import File

SKIPPED: Final = frozenset(("node_modules", ".venv", "__pycache__", ".DS_Store"))
LARGEST: Final = 64 << 20
"""A larger file is left where it is."""
TEXT: Final = 4 << 20


def text(path: Path) -> str:
    """What a file says; empty where there is none, or it is no text, or very long."""
    try:
        if path.stat().st_size > TEXT:
            return ""
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def document(path: Path) -> Any:
    """The JSON of a file; None where it has none."""
    try:
        return json.loads(text(path) or "null")
    except ValueError:
        return None


def tree(folder: Path, base: str = "") -> Iterator[File]:
    """All plain files below a folder. Links are not followed: they may lead anywhere."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in sorted(folder.iterdir()):
        if path.name in SKIPPED or path.is_symlink():
            continue
        target = f"{base}{path.name}"
        if path.is_dir():
            yield from tree(path, f"{target}/")
        elif path.is_file() and path.stat().st_size <= LARGEST:
            yield File(str(path), target)


def skills(folder: Path) -> Iterator[tuple[str, tuple[File, ...]]]:
    """(name, files) of each skill below a folder, at whichever depth: a folder with a SKILL.md."""
    if not folder.is_dir():
        return
    for path in sorted(folder.rglob("SKILL.md")):
        if not any(part in SKIPPED or part.startswith(".") for part in path.relative_to(folder).parts[:-1]):
            yield path.parent.name, tuple(tree(path.parent))
