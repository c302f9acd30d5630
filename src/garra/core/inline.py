"""Words with marks, written in a platform's own way: tags, or signs around the words.

Signs (`*bold*`) only count where a platform sees them as signs, so a mark that would stay a plain star is left out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from garra.core.markup import Mark, Span, Spans, words
from garra.core.value import frozen

Pair = tuple[str, str]


def same(text: str) -> str:
    """Nothing to escape."""
    return text


_KNOWN = ("http://", "https://", "mailto:", "tel:", "tg://", "xmpp:", "matrix:", "geo:")


def labelled(href: str, label: str, text: str) -> str:
    """A link where there are no links: its label, and its address behind it."""
    return label if text.strip() == href.removeprefix("mailto:") else f"{label} ({href})"


@frozen
class Pen:
    """How words are written. `marks` are what stands around marked words; a mark that is not there is not shown.

    `link(href, label, text)` writes a link with its written `label`, which reads `text`; `bare` an address that is its
    own label. `code` writes code, where the pair in `marks` does not do. `signs`: the marks are signs that only count
    at the edges of words, of any words if `loose`.
    """

    marks: Mapping[Mark, Pair]
    escape: Callable[[str], str] = same
    link: Callable[[str, str, str], str] = labelled
    bare: Callable[[str], str] = same
    code: Callable[[str], str] | None = None
    signs: bool = False
    loose: bool = False
    linked_code: bool = True


def write(spans: Spans, pen: Pen) -> str:
    """The words in the pen's way, every mark closed, in the reverse order of their opening."""
    spans = firm(spans, pen) if pen.signs else spans
    if not any(span.href for span in spans):
        return _marked(spans, pen)
    return "".join(
        _linked(href, tuple(group), pen) if href else _marked(tuple(group), pen)
        for href, group in groupby(spans, _href)
    )


def _href(span: Span) -> str:
    return span.href


def _linked(href: str, spans: Spans, pen: Pen) -> str:
    text = words(spans)
    if text == href:
        return _marked(spans, replace(pen, escape=pen.bare, code=None))
    if not pen.linked_code:
        spans = tuple(replace(span, marks=()) if span.marks == ("code",) else span for span in spans)
    link = pen.link if href.lower().startswith(_KNOWN) else labelled
    return link(pen.escape(href) if link is labelled else href, _marked(spans, pen), text)


def _marked(spans: Spans, pen: Pen) -> str:
    if not pen.marks:
        return pen.escape(words(spans))
    out: list[str] = []
    stack: list[Mark] = []
    for span in spans:
        if stack or span.marks:
            _turn(stack, [mark for mark in span.marks if mark in pen.marks], out, pen)
        out.append(pen.code(span.text) if pen.code and "code" in span.marks else pen.escape(span.text))
    _turn(stack, [], out, pen)
    return "".join(out)


def _turn(stack: list[Mark], wanted: list[Mark], out: list[str], pen: Pen) -> None:
    """Close what ends here, the last opened first, and open what begins."""
    if stack == wanted:
        return
    keep = next((at for at, mark in enumerate(stack) if mark not in wanted), len(stack))
    out.extend(pen.marks[mark][1] for mark in reversed(stack[keep:]))
    del stack[keep:]
    fresh = [mark for mark in wanted if mark not in stack]
    out.extend(pen.marks[mark][0] for mark in fresh)
    stack += fresh


def firm(spans: Spans, pen: Pen) -> Spans:
    """Only the marks whose signs would be seen as signs where they stand."""
    for mark in pen.marks:
        at = 0
        while at < len(spans):
            end = at
            while end < len(spans) and mark in spans[end].marks and spans[end].href == spans[at].href:
                end += 1
            if end > at and not _holds(spans, at, end, pen):
                spans = (*spans[:at], *(_without(span, mark) for span in spans[at:end]), *spans[end:])
            at = max(end, at + 1)
    return spans


def _without(span: Span, mark: Mark) -> Span:
    return replace(span, marks=tuple(each for each in span.marks if each != mark))


def _holds(spans: Sequence[Span], start: int, end: int, pen: Pen) -> bool:
    """Whether the signs around the spans from `start` to `end` would count."""
    inner = words(spans[start:end])
    if spans[start].marks == ("code",):
        return bool(inner.strip())
    if not inner or inner != inner.strip() or "\n" in inner:
        return False
    before = spans[start - 1].text[-1:] if start else ""
    after = spans[end].text[:1] if end < len(spans) else ""
    touching = start > 0 and not before.isspace() and bool(set(spans[start - 1].marks) - set(spans[start].marks))
    return not touching and _edge(before, inner[0], pen) and _edge(after, inner[-1], pen)


def _edge(outer: str, inner: str, pen: Pen) -> bool:
    """Whether a sign between these two characters (`outer` empty at the text's edge) can be one."""
    if not outer or outer.isspace():
        return True
    if pen.loose:
        return not _punctuation(inner)
    return _punctuation(outer) and not _punctuation(inner)


def _punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"
