"""A formatted text as values, the same whatever it was written in and wherever it is going.

A document is a flat row of blocks. A list is not a block: its items are, each with its depth and its marker, so that a
text can be cut between any two of them. A span is a stretch of words with the same marks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from garra.core.value import frozen

Mark = Literal["bold", "italic", "strike", "spoiler", "code"]
Kind = Literal["text", "heading", "code", "rule", "table"]
Unit = Literal["utf16", "chars", "bytes"]


@frozen
class Span:
    """Words alike. A span of code has no other mark. `href` is where a link leads; a bare address is its own label."""

    text: str
    marks: tuple[Mark, ...] = ()
    href: str = ""

    @property
    def bare(self) -> bool:
        return self.href == self.text != ""


Spans = tuple[Span, ...]
Rows = tuple[tuple[Spans, ...], ...]


@frozen
class Block:
    """One paragraph, heading (of `level`), code block (`code` in language `info`), rule, or table (its head first).

    `depth` counts the lists it is in, `marker` stands before the first block of an item, `quote` counts quotations.
    `close`: no empty line parts it from the block before.
    """

    kind: Kind = "text"
    spans: Spans = ()
    code: str = ""
    info: str = ""
    level: int = 0
    depth: int = 0
    marker: str = ""
    quote: int = 0
    close: bool = False
    rows: Rows = ()


Document = tuple[Block, ...]


def words(spans: Iterable[Span]) -> str:
    """What is read, without marks and addresses."""
    return "".join(span.text for span in spans)


def literal(text: str) -> Document:
    """A document that says exactly this, with nothing in it understood as a mark."""
    return (Block(spans=(Span(text),)),) if text else ()


def blank(document: Document) -> bool:
    """Whether nothing can be seen in it."""
    return not any(_seen(block) for block in document)


def _seen(block: Block) -> bool:
    if block.kind == "rule":
        return True
    texts = [block.code, words(block.spans), *(words(cell) for row in block.rows for cell in row)]
    return any(visible(text) for text in texts)


def visible(text: str) -> bool:
    """Whether any character of it can be seen: not space, not control, not of zero width."""
    return any(unicodedata.category(char) not in _UNSEEN and char not in _FILLERS for char in text)


_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Mn", "Me"})
_FILLERS = frozenset("\u2800\u3164\u115f\u1160\uffa0")


def size(text: str, unit: Unit) -> int:
    """How long a text is."""
    if unit == "chars":
        return len(text)
    if unit == "bytes":
        return len(text.encode("utf-8", "replace"))
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "replace")) // 2


def whole(text: str, at: int) -> bool:
    """Whether `text` can be cut at `at` without breaking what is seen as one character: an emoji with its skin and its
    joined others, a flag, a letter with its accents, a syllable.
    """
    if at <= 0 or at >= len(text):
        return True
    left, right = text[at - 1], text[at]
    if left.isascii() and right.isascii():
        return not (left == "\r" and right == "\n")
    if _clings(right) or left in _BINDS:
        return False
    if _flag(left) and _flag(right):
        start = at
        while start and _flag(text[start - 1]):
            start -= 1
        return (at - start) % 2 == 0
    return True


_BINDS = frozenset("\u200d\u034f")


def _clings(char: str) -> bool:
    """Whether a character is shown as part of the one before it."""
    code = ord(char)
    return (
        char in _BINDS
        or unicodedata.category(char) in {"Mn", "Me", "Mc"}
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
        or 0x1160 <= code <= 0x11FF
        or 0xDC00 <= code <= 0xDFFF
    )


def _flag(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF


def width(text: str) -> int:
    """How many columns a text takes in a fixed-width font."""
    if text.isascii():
        return len(text)
    return sum(0 if _clings(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def divide(spans: Sequence[Span], at: int) -> tuple[Spans, Spans]:
    """Cut spans in two behind `at` characters. A link that is cut leads to the same place on both sides, but an address
    that is cut is one no more.
    """
    head: list[Span] = []
    tail: list[Span] = []
    for each in spans:
        room = max(0, at)
        span = replace(each, href="") if each.bare and 0 < room < len(each.text) else each
        if span.text[:room]:
            head.append(span if room >= len(span.text) else replace(span, text=span.text[:room]))
        if span.text[room:]:
            tail.append(span if room == 0 else replace(span, text=span.text[room:]))
        at -= len(span.text)
    return tuple(head), tuple(tail)


def strip(spans: Spans) -> Spans:
    """Without the space around it."""
    text = words(spans)
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    return divide(divide(spans, end)[0], start)[1]


_WIDEST = 32


def grid(rows: Rows) -> str:
    """A table as lines of aligned columns, its head underlined; what is very wide is not waited for."""
    texts = [[words(cell) for cell in row] for row in rows]
    columns = max((len(row) for row in texts), default=0)
    widths = [min(_WIDEST, max((width(row[at]) for row in texts if at < len(row)), default=0)) for at in range(columns)]
    lines = [_line(row, widths) for row in texts]
    if lines:
        lines.insert(1, "-+-".join("-" * wide for wide in widths))
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (wide - width(cell)) for cell, wide in zip(cells, widths, strict=False))
    return " | ".join(padded).rstrip()
