"""A formatted text as values."""

from __future__ import annotations

import pytest

from garra.core.markup import Block, Span, Unit, blank, divide, grid, literal, size, strip, visible, whole, width, words

FAMILY = "👩‍👩‍👧"


def test_what_can_be_seen() -> None:
    assert visible("a")
    assert visible("\U00018cd6")
    assert not visible(" \n\u200b\ufe0f\u2800\x07")
    assert blank((Block(spans=(Span("\u200b"),)),))
    assert not blank((Block("rule"),))
    assert not blank((Block("table", rows=(((Span("a"),),),)),))
    assert literal("a*") == (Block(spans=(Span("a*"),)),)
    assert literal("") == ()


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [("aé😀", "chars", 3), ("aé😀", "utf16", 4), ("aé😀", "bytes", 7), ("abc", "utf16", 3)],
)
def test_how_long_a_text_is(text: str, unit: Unit, expected: int) -> None:
    assert size(text, unit) == expected


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("ab", [0, 1, 2]),
        ("\r\n", [0, 2]),
        ("e\u0301x", [0, 2, 3]),
        (FAMILY + "x", [0, 5, 6]),
        ("👍🏽!", [0, 2, 3]),
        ("🇩🇪🇫🇷", [0, 2, 4]),
        ("中文", [0, 1, 2]),
        ("각x", [0, 1, 2]),
    ],
)
def test_where_a_text_can_be_cut(text: str, places: list[int]) -> None:
    assert [at for at in range(len(text) + 1) if whole(text, at)] == places


def test_columns_of_wide_letters() -> None:
    assert (width("abc"), width("中文"), width("e\u0301é")) == (3, 4, 2)
    rows = (((Span("a"),), (Span("中"),)), ((Span("long"),), (Span("b"),)), ((Span("x"),),))
    assert grid(rows) == "a    | 中\n-----+---\nlong | b\nx"
    assert grid(()) == ""


def test_spans_are_cut_and_stripped() -> None:
    spans = (Span(" one", ("bold",)), Span("two", (), "https://e.org"), Span(" "))
    assert divide(spans, 4) == (spans[:1], spans[1:])
    head, tail = divide(spans, 5)
    assert head[-1] == Span("t", (), "https://e.org")
    assert tail[0] == Span("wo", (), "https://e.org")
    assert words(strip(spans)) == "onetwo"
    address = (Span("https://e.org", (), "https://e.org"),)
    assert divide(address, 4) == ((Span("http"),), (Span("s://e.org"),))
    assert address[0].bare
