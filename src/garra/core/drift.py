"""What changed in a file since a conversation began, told in brief: its prompt still shows the old text."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

LINES: Final = 40
"""So many changed lines are told."""
CHARS: Final = 1_500
"""Characters that they may have."""
LARGE: Final = 4_000
"""Lines of a file that are compared."""


@lru_cache(16)
def note(name: str, old: str | None, new: str | None) -> str:
    """What to know of the file `name`, which was `old` (None: not there) and is `new`; empty where nothing changed."""
    before, after = _lines(old), _lines(new)
    if before == after:
        return ""
    if not after:
        return f"{name} was emptied or removed after this conversation began; what the prompt shows of it is gone."
    told = _changes(before, after)
    text = "\n".join(told[:LINES])
    more = len(told) > LINES or len(text) > CHARS
    rest = f"\n[… more was changed; read {name}]" if more else ""
    return f"{name} was changed after this conversation began (+ added, - removed):\n{text[:CHARS]}{rest}"


def _changes(before: list[str], after: list[str]) -> list[str]:
    """The lines that were added and removed, in their order."""
    import difflib  # noqa: PLC0415 - seldom needed, and large

    if len(before) > LARGE or len(after) > LARGE:
        known = set(before)
        return [f"+ {line}" for line in after if line not in known]
    told: list[str] = []
    for _, low, high, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if before[low:high] != after[start:end]:
            told += [f"- {line}" for line in before[low:high]] + [f"+ {line}" for line in after[start:end]]
    return told


def _lines(text: str | None) -> list[str]:
    return [line.rstrip() for line in (text or "").splitlines() if line.strip()]
