"""Words with marks, in tags and in signs."""

from __future__ import annotations

import pytest

from garra.core.inline import Pen, firm, labelled, same, write
from garra.core.markup import Mark, Span

TAGS = Pen({"bold": ("<b>", "</b>"), "italic": ("<i>", "</i>"), "code": ("<c>", "</c>")}, str.upper)
STARS = Pen({"bold": ("*", "*"), "code": ("", "")}, code=lambda text: f"`{text}`", signs=True)
LOOSE = Pen({"bold": ("**", "**"), "italic": ("*", "*")}, signs=True, loose=True)


def bold(text: str, *more: Mark) -> Span:
    return Span(text, ("bold", *more))


def test_marks_are_closed_in_the_reverse_order_of_their_opening() -> None:
    spans = (bold("a"), bold("b", "italic"), Span("c", ("italic",)), Span("d", ("strike",)), Span("e", ("code",)))
    assert write(spans, TAGS) == "<b>A<i>B</i></b><i>C</i>D<c>E</c>"
    assert write(spans, Pen({}, same)) == "abcde"


def test_links() -> None:
    link = "https://e.org"
    spans = (Span("see "), Span("a ", (), link), Span("b", ("bold",), link), Span(link, (), link))
    linked = Pen(TAGS.marks, link=lambda href, label, text: f"[{label}|{href}|{text}]", bare=lambda text: f"<{text}>")
    assert write(spans[:3], linked) == "see [a <b>b</b>|https://e.org|a b]"
    assert write(spans[3:], linked) == "<https://e.org>"
    assert write((Span("x", (), "ftp://e.org"),), linked) == "x (ftp://e.org)"
    assert write((Span("x", ("code",), link),), Pen(TAGS.marks, linked_code=False)) == "x (https://e.org)"
    assert labelled("mailto:a@e.org", "a@e.org", "a@e.org") == "a@e.org"


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ((Span("a "), bold("b"), Span(" c")), "a *b* c"),
        ((Span("a"), bold("b")), "ab"),
        ((Span("("), bold("b"), Span(")")), "(*b*)"),
        ((bold("b "), Span("c")), "b c"),
        ((bold("b\nc"),), "b\nc"),
        ((bold(""),), ""),
        ((Span("a", ("code",)), Span(" x")), "`a` x"),
        ((Span(" ", ("code",)),), " "),
        ((Span("a "), bold("(b)")), "a *(b)*"),
        ((Span("."), bold("(b)")), ".(b)"),
    ],
)
def test_signs_that_would_not_count_are_left_out(spans: tuple[Span, ...], expected: str) -> None:
    assert write(spans, STARS) == expected


def test_signs_inside_words_and_side_by_side() -> None:
    assert write((Span("中"), bold("文"), Span("字")), LOOSE) == "中**文**字"
    assert write((Span("中"), bold("。"), Span("字")), LOOSE) == "中。字"
    assert write((Span("a", ("italic",)), bold("b")), LOOSE) == "*a*b"
    linked = (Span("a", ("bold",), "https://e.org"), bold("b"))
    assert firm(linked, LOOSE) == linked
