"""Cuts long answers into messages a channel takes, where a reader would cut them, and never through a code fence.

Where a fence is longer than a message, it is closed at the end of one and opened again, with its language, in the
next. Lengths are in the unit of `size` (characters, if not given).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from garra.core.patterns import later
from garra.core.value import frozen

_FENCE = later(r"^ {0,3}(`{3,}|~{3,})([^\n`]*)$", re.M)
_BREAKS = (re.compile(r"\n[ \t]*\n"), re.compile(r"\n"), re.compile(r"[.!?…](?=\s)|[。！？]"), re.compile(r"\s"))
LEAST = 32
"""No limit below this is kept to: a fence must fit in."""


@frozen
class Fence:
    """A code block from `start` to `end`; `mark` opens it (with its language), `close` closes it."""

    start: int
    end: int
    mark: str
    close: str


def fences(text: str) -> tuple[Fence, ...]:
    """The code blocks of a text; one that is not closed ends with the text."""
    found: list[Fence] = []
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opened is None:
            opened = line
        elif _closes(line, opened):
            found.append(_fence(opened, line.end()))
            opened = None
    return (*found, _fence(opened, len(text))) if opened else tuple(found)


def _closes(line: re.Match[str], opened: re.Match[str]) -> bool:
    mark, first = line.group(1), opened.group(1)
    return mark[0] == first[0] and len(mark) >= len(first) and not line.group(2).strip()


def _fence(opened: re.Match[str], end: int) -> Fence:
    return Fence(opened.start(), end, opened.group().strip(), opened.group(1))


def chunks(text: str, limit: int, size: Callable[[str], int] = len) -> tuple[str, ...]:
    """The text in pieces of at most `limit`; blank pieces are left out."""
    return tuple(_chunks(text.strip("\n"), max(limit, LEAST), size))


def _chunks(text: str, limit: int, size: Callable[[str], int]) -> Iterator[str]:
    while size(text) > limit:
        head, text = _part(text, _room(text, limit, size))
        if head.strip():
            yield head
    if text.strip():
        yield text


def _room(text: str, limit: int, size: Callable[[str], int]) -> int:
    """How many characters of the text fit."""
    if size is len:
        return limit
    low, high = 1, min(len(text), limit)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(text[:middle]) <= limit else (low, middle - 1)
    return low


def _part(text: str, room: int) -> tuple[str, str]:
    """(what fits in `room` characters, the rest)."""
    spans = fences(text)
    across = next((fence for fence in spans if fence.start < room < fence.end), None)
    if across is None:
        at = _break(text, room, spans)
        return text[:at].rstrip(), text[at:].lstrip("\n") if text[at - 1 : at + 1].count("\n") else text[at:].lstrip()
    if across.start >= room // 3 and text[: across.start].strip():
        return text[: across.start].rstrip(), text[across.start :]
    return _through(text, room, across)


def _break(text: str, end: int, spans: tuple[Fence, ...]) -> int:
    """Where to cut before `end`: after a paragraph, a line, a sentence, a word, or at the very end; in no fence."""
    for pattern in _BREAKS:
        found = (match.end() for match in pattern.finditer(text, 0, end))
        fit = [at for at in found if at >= end // 3 and not any(span.start < at < span.end for span in spans)]
        if fit:
            return fit[-1]
    return end


def _through(text: str, room: int, fence: Fence) -> tuple[str, str]:
    """Cut inside a fence, at a line's end where there is one."""
    opening = text.find("\n", fence.start) + 1
    end = room - len(fence.close) - 1
    line = text.rfind("\n", opening, end) + 1
    at = line if line > opening else max(end, opening + 1)
    head = text[:at].rstrip("\n")
    return f"{head}\n{fence.close}", f"{fence.mark}\n{text[at:]}"


@frozen
class Blocks:
    """Settings for an answer sent in blocks while it grows: no block shorter than `least` but the last, none longer
    than `most`.
    """

    least: int = 800
    most: int = 1_200


def step(waiting: str, delta: str, blocks: Blocks, *, last: bool = False) -> tuple[str, tuple[str, ...]]:
    """More words came; (what waits, the blocks that may go out). Cuts at paragraphs outside fences."""
    text = waiting + delta
    out: list[str] = []
    while (at := _ready(text, blocks)) is not None:
        head, text = (text[:at].rstrip(), text[at:].lstrip("\n")) if at else _part(text, blocks.most)
        out += [head] if head.strip() else []
    if last:
        out += chunks(text, blocks.most)
        text = ""
    return text, tuple(out)


def _ready(text: str, blocks: Blocks) -> int | None:
    """Where a block ends, 0 for a cut of need, None to wait."""
    spans = fences(text)
    for found in _BREAKS[0].finditer(text, min(blocks.least, len(text)), min(blocks.most, len(text))):
        if not any(span.start < found.start() and found.end() <= span.end for span in spans):
            return found.end()
    return 0 if len(text) > blocks.most else None
