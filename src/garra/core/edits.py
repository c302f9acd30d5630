"""Exact replacements in a text, all or none."""

from __future__ import annotations

from collections.abc import Sequence

from garra.core.errors import ToolFailed
from garra.core.value import frozen


@frozen
class Edit:
    """`old` becomes `new`; it must stand in the text once, or `every` time when so wanted."""

    old: str
    new: str
    every: bool = False


def apply(path: str, text: str, edits: Sequence[Edit]) -> str:
    """`text` with all `edits` made, one after the other. Line ends stay what they were; `\\n` in an edit means either.

    Raises ToolFailed, which says which edit does not fit and why; nothing is changed then.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    changed = text.replace("\r\n", "\n")
    before = changed
    for number, edit in enumerate(edits, 1):
        where = path if len(edits) == 1 else f"{path}: edit {number} of {len(edits)}"
        changed = _one(where, changed, Edit(_lf(edit.old), _lf(edit.new), edit.every))
    if changed == before:
        raise ToolFailed(f"{path}: the edit changes nothing; old and new text are the same")
    return changed.replace("\n", newline) if newline == "\r\n" else changed


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _one(where: str, text: str, edit: Edit) -> str:
    if not edit.old:
        raise ToolFailed(f"{where}: the old text is empty; to make or replace a whole file use write")
    count = text.count(edit.old)
    if count == 0:
        raise ToolFailed(f"{where}: the old text is not in the file{_hint(text, edit.old)}")
    if count > 1 and not edit.every:
        lines = ", ".join(str(line) for line in _lines(text, edit.old))
        raise ToolFailed(
            f"{where}: the old text stands {count} times (lines {lines}); add lines around it, or set replaceAll"
        )
    return text.replace(edit.old, edit.new)


def _lines(text: str, part: str) -> list[int]:
    found: list[int] = []
    at = text.find(part)
    while at >= 0 and len(found) < 5:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(part, at + len(part))
    return found


def _hint(text: str, old: str) -> str:
    """Where something like it stands."""
    import difflib  # noqa: PLC0415 - seldom needed, and large

    first = next((line for line in old.split("\n") if line.strip()), "")
    lines = text.split("\n")[:5_000]
    for number, line in enumerate(lines, 1):
        if line.strip() and line.strip() == first.strip():
            return f"; its first line is line {number}, but blanks or the lines after it differ. Read it again"
    near = difflib.get_close_matches(first[:200], [line[:200] for line in lines[:2_000]], n=1, cutoff=0.7)
    return f"; the nearest line reads {near[0]!r}. Read the file again" if near else ". Read the file first"
