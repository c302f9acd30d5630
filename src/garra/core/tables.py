"""Tables for a platform that has none: as lines of code, as items of a list, or as they were typed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from garra.core.markup import Block, Document, Rows, Span, Spans, grid, words

Tables = Literal["off", "bullets", "code", "block"]
"""`block` leaves a table one, where the format has tables; everything else writes those as code. `off`: as typed."""


def tabled(document: Document, how: Tables) -> Document:
    """The document with its tables written so."""
    if how == "block" or all(block.kind != "table" for block in document):
        return document
    return tuple(part for block in document for part in _written(block, how))


def _written(block: Block, how: Tables) -> Iterator[Block]:
    if block.kind != "table":
        yield block
    elif how == "bullets":
        yield from _items(block)
    elif how == "code":
        yield replace(block, kind="code", code=grid(block.rows), rows=())
    else:
        yield replace(block, kind="text", spans=(Span(_typed(block.rows)),), rows=())


def _items(block: Block) -> Iterator[Block]:
    """Of each row its first cell, and below it an item for each other, named by its column."""
    head, *rows = block.rows or ((),)
    for number, row in enumerate(row for row in rows if row):
        first = replace(block, kind="text", rows=(), close=bool(number) or block.close)
        yield replace(first, spans=tuple(map(_bold, row[0])) if len(row) > 1 else row[0])
        for at, cell in enumerate(row[1:], start=1):
            name = (*head[at], Span(": ")) if at < len(head) and words(head[at]) else ()
            yield replace(first, spans=(*name, *cell), depth=block.depth + 1, marker="•", close=True)


def _bold(span: Span) -> Span:
    return span if {"bold", "code"} & set(span.marks) else replace(span, marks=("bold", *span.marks))


def _typed(rows: Rows) -> str:
    lines = [_line(row) for row in rows]
    lines[1:1] = ["| " + " | ".join("---" for _ in rows[0]) + " |"] if rows else []
    return "\n".join(lines)


def _line(row: tuple[Spans, ...]) -> str:
    return "| " + " | ".join(words(cell) for cell in row) + " |"
