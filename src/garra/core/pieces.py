"""Cuts a document into messages a platform takes, where a reader would cut it.

What counts is the written form, in the platform's unit, in every format of its ladder: whatever format is sent in the
end, the piece fits. No cut goes through a link, a code in a line, an emoji or a flag; a code block that must be cut is
whole on both sides. All words are there, in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from garra.core.markup import Block, Document, Span, Unit, blank, divide, grid, strip, whole, words
from garra.core.render import Writer
from garra.core.tables import Tables, tabled
from garra.core.value import frozen

LEAST = 64
"""No limit below this is kept to: a code block's frame and an emoji must fit in."""

_GAP = 2
_BREAKS = (re.compile(r"\n"), re.compile(r"[.!?…](?=\s)|[。！？]"), re.compile(r"\s|[，；、]"))
_FEW = 3


@frozen
class Frame:
    """What a message must fit: `limit` of `unit` in each of `formats`, a ladder with the best first.

    `whole`: a paragraph that fits in a message is not cut to fill the one before. `tables` is how tables are written.
    """

    limit: int
    unit: Unit = "chars"
    formats: tuple[str, ...] = ("plain",)
    whole: bool = False
    tables: Tables = "block"


@frozen
class Piece:
    """One message: its part of the document, and that written in each format of the ladder."""

    document: Document
    texts: tuple[str, ...]


class _Desk:
    """A frame, and what was written for it."""

    def __init__(self, frame: Frame) -> None:
        self.most = max(frame.limit, LEAST)
        self.whole = frame.whole
        self._unit: Unit = frame.unit
        self._writers = tuple(Writer(each) for each in frame.formats)

    def cost(self, block: Block) -> int:
        """What a block takes at most, with what parts it from the one before."""
        if max(len(block.code), sum(len(span.text) for span in block.spans)) > self.most:
            return self.most + 2 * _GAP
        return max(writer.length(block, self._unit) for writer in self._writers) + _GAP + 2 * block.quote

    def piece(self, document: Document) -> Piece:
        return Piece(document, tuple(writer.text(document) for writer in self._writers))


def pieces(document: Document, frame: Frame) -> tuple[Piece, ...]:
    """The document in messages, none of them empty."""
    desk = _Desk(frame)
    return tuple(desk.piece(part) for part in _parts(tabled(document, frame.tables), desk) if not blank(part))


def _parts(document: Document, desk: _Desk) -> Iterator[Document]:
    waiting = [_spelled(block, desk.most // 2) for block in reversed(document)]
    now: list[Block] = []
    used = 0
    while waiting:
        block = waiting.pop()
        cost = desk.cost(block)
        if used + cost <= desk.most + _GAP:
            now.append(block)
            used += cost
            continue
        parts = _cut(block, desk, used, fits=cost <= desk.most)
        waiting.extend(reversed(parts[1:] if parts else (block,)))
        kept = [] if parts else _headings(now)
        yield (*now[: len(now) - len(kept)], *parts[:1])
        waiting.extend(reversed(kept))
        now, used = [], 0
    if now:
        yield tuple(now)


def _spelled(block: Block, most: int) -> Block:
    """The block with addresses of more than `most` written out as words, since words can be cut."""
    if not any(len(span.href) > most for span in block.spans):
        return block
    out: list[Span] = []
    for at, span in enumerate(block.spans):
        if len(span.href) <= most:
            out.append(span)
            continue
        last = at + 1 == len(block.spans) or block.spans[at + 1].href != span.href
        out += [replace(span, href=""), *([Span(f" ({span.href})")] if last and not span.bare else [])]
    return replace(block, spans=tuple(out))


def _headings(now: Sequence[Block]) -> list[Block]:
    """The headings at the end of a message, which belong to what follows; none if there is nothing else in it."""
    at = len(now)
    while at and now[at - 1].kind == "heading":
        at -= 1
    return list(now[at:]) if at else []


def _cut(block: Block, desk: _Desk, used: int, *, fits: bool) -> tuple[Block, ...]:
    """The block in two, the first of which has room behind what is `used`; empty when it is to go to a new message."""
    room = desk.most + _GAP - used
    if used and (room < desk.most // 3 or (fits and _waits(block, desk, used))):
        return ()
    if block.kind == "table":
        block = replace(block, kind="code", code=grid(block.rows), rows=())
    cut = _code if block.kind == "code" else _text
    return cut(block, lambda part: desk.cost(part) <= room, room, first=not used)


def _waits(block: Block, desk: _Desk, used: int) -> bool:
    """Whether a block that fits in a message goes to a new one rather than in two."""
    return desk.whole or used >= desk.most // 2 or block.kind in ("code", "table")


def _most(high: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `high` that fits; 0 when none does."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _text(block: Block, fits: Callable[[Block], bool], most: int, *, first: bool) -> tuple[Block, ...]:
    text = words(block.spans)
    room = _most(min(len(text), most), lambda at: fits(replace(block, spans=divide(block.spans, at)[0])))
    at = _place(block.spans, text, room)
    while at and not fits(replace(block, spans=strip(divide(block.spans, at)[0]))):
        at = _place(block.spans, text, at - 1)  # a mark that a space held back is written once the space is gone
    if not at and not first:
        return ()
    head, tail = divide(block.spans, at or max(room, 1))
    return replace(block, spans=strip(head)), replace(block, spans=strip(tail), marker="")


def _place(spans: Sequence[Span], text: str, room: int) -> int:
    """Where to cut before `room`: behind a line, a sentence, a word, or a character; 0 when there is no place."""
    closed = _closed(spans)
    for pattern in _BREAKS:
        ends = [found.end() for found in pattern.finditer(text, room // 3, room)]
        free = next((at for at in reversed(ends) if whole(text, at) and not _inside(at, closed)), 0)
        if text[:free].strip():
            return free
    at = next((start for start, end in closed if start < room < end and start > room // 3), room)
    while at and not whole(text, at):
        at -= 1
    return at


def _closed(spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Where links and codes in the line stand, which are not cut if there is another place."""
    out: list[tuple[int, int]] = []
    at, last = 0, ""
    for span in spans:
        end = at + len(span.text)
        if span.href and span.href == last:
            out[-1] = (out[-1][0], end)
        elif span.href or "code" in span.marks:
            out.append((at, end))
        at, last = end, span.href
    return out


def _inside(at: int, closed: Sequence[tuple[int, int]]) -> bool:
    return any(start < at < end for start, end in closed)


def _code(block: Block, fits: Callable[[Block], bool], most: int, *, first: bool) -> tuple[Block, ...]:
    lines = block.code.split("\n")
    count = _most(min(len(lines), most), lambda at: fits(replace(block, code="\n".join(lines[:at]))))
    if count < _FEW and not first:
        return ()
    if count:
        head, tail = "\n".join(lines[:count]), "\n".join(lines[count:])
    else:
        at = _most(min(len(block.code), most), lambda at: fits(replace(block, code=block.code[:at])))
        room = at
        while at and not whole(block.code, at):
            at -= 1
        at = at or max(room, 1)
        head, tail = block.code[:at], block.code[at:]
    return replace(block, code=head), replace(block, code=tail, marker="")
