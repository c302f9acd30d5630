"""How much of the workspace's files fits into a prompt, and of what is added behind a history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from garra.core.compaction import CHARS, weight
from garra.core.value import frozen

FILE_CHARS = 20_000
TOTAL_CHARS = 60_000
NEAR = 0.85
"""A file this full is near its limit."""
ADDED: Final = 2_000
"""Tokens of what a context engine may add, where the window is large enough."""
ADDED_SHARE: Final = 20
"""It never takes more than this part of the window."""


@frozen
class Document:
    """A file as it was read. `text` is `None` when there is none; `note` says in a line why it could not be read.

    `blank`: it says nothing yet (a form nobody filled in), so it is not shown.
    """

    name: str
    path: str
    text: str | None = None
    note: str = ""
    blank: bool = False


@frozen
class Injected:
    """A file as the model sees it; sizes in characters."""

    name: str
    path: str
    missing: bool
    raw_chars: int
    text: str
    truncated: bool


def fit(documents: Iterable[Document], per_file: int = FILE_CHARS, total: int = TOTAL_CHARS) -> tuple[Injected, ...]:
    """Cut each file to `per_file` characters and all of them to `total`, first come first served."""
    fitted: list[Injected] = []
    left = total
    for document in documents:
        one = _one(document, min(per_file, left))
        left -= len(one.text)
        fitted.append(one)
    return tuple(fitted)


def _one(document: Document, limit: int) -> Injected:
    name, path = document.name, document.path
    if document.note:
        return Injected(name, path, False, 0, f"[{name}: {document.note}]"[:limit], True)
    if document.text is None:
        return Injected(name, path, True, 0, "", False)
    text = "" if document.blank else document.text.strip()
    shown = cut(text, name, limit)
    return Injected(name, path, False, len(document.text), shown, shown != text)


def cut(text: str, name: str, limit: int) -> str:
    """At most `limit` characters: the head, a note, and the tail, which often holds what is newest."""
    if len(text) <= limit:
        return text
    note = f"\n[… cut: {name} has {len(text)} characters; read it for the rest …]\n"
    room = limit - len(note)
    if room < 5:
        return ""
    tail = room // 5
    return text[: room - tail] + note + text[-tail:]


def room(window: int) -> int:
    """Tokens for what is added behind a history."""
    return min(ADDED, window // ADDED_SHARE)


def share(texts: Iterable[str], tokens: int) -> tuple[str, ...]:
    """Each of `texts` within `tokens` together, first come first served; what has no room is empty."""
    shared: list[str] = []
    left = tokens * CHARS
    for text in texts:
        one = _lighter(text.strip(), left)
        left -= weight(one)
        shared.append(one)
    return tuple(shared)


def _lighter(text: str, most: int) -> str:
    """At most `most` characters of ASCII, or bytes of anything else."""
    if weight(text) <= most:
        return text
    room = most - weight(SHORTER)
    while text and weight(text) > room:
        text = text[: min(len(text) - 1, max(0, len(text) * room // weight(text)))]
    return text + SHORTER if text else ""


SHORTER: Final = " [… cut]"


def injected_json(files: Iterable[Injected]) -> list[dict[str, Any]]:
    """As clients read it in a system prompt report."""
    return [
        {
            "name": file.name,
            "path": file.path,
            "missing": file.missing,
            "rawChars": file.raw_chars,
            "injectedChars": len(file.text),
            "truncated": file.truncated,
        }
        for file in files
    ]


def truncation_json(files: tuple[Injected, ...], per_file: int, total: int) -> dict[str, Any]:
    """How many files were cut or are nearly so."""
    return {
        "warningMode": "always",
        "warningShown": any(file.truncated for file in files),
        "truncatedFiles": sum(file.truncated for file in files),
        "nearLimitFiles": sum(not file.truncated and file.raw_chars >= NEAR * per_file for file in files),
        "totalNearLimit": sum(len(file.text) for file in files) >= NEAR * total,
    }
