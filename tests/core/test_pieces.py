"""A document in messages."""

from __future__ import annotations

import pytest

from garra.core.markup import Block, Document, Span, words
from garra.core.pieces import LEAST, Frame, pieces

LINK = "https://e.org/" + "p" * 20


def says(*texts: str) -> Document:
    return tuple(Block(spans=(Span(text),)) for text in texts)


def cut(document: Document, limit: int = 100, *formats: str) -> list[str]:
    return [piece.texts[0] for piece in pieces(document, Frame(limit, "chars", formats or ("plain",)))]


def test_paragraphs_stay_together_as_long_as_they_fit() -> None:
    assert cut(says("a" * 40, "b" * 40, "c" * 40)) == [f"{'a' * 40}\n\n{'b' * 40}", "c" * 40]
    assert cut(()) == []
    assert cut(says("\u200b")) == []
    assert cut(says("x" * 70), 1) == ["x" * LEAST, "x" * 6]


def test_whole_paragraphs_go_to_a_new_message_rather_than_in_two() -> None:
    words = "word " * 14 + "word"
    whole = [piece.texts[0] for piece in pieces(says("a" * 20, words), Frame(100, whole=True))]
    filled = [piece.texts[0] for piece in pieces(says("a" * 30, words), Frame(100))]
    assert whole == ["a" * 20 + "\n\n" + words]
    assert len(filled[0]) > 60
    held = [piece.texts[0] for piece in pieces(says("a" * 30, words), Frame(100, whole=True))]
    assert held == ["a" * 30, words]
    assert [len(piece.texts[0]) for piece in pieces(says("a" * 30, "b" * 150), Frame(100, whole=True))] == [100, 82]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (f"{'a ' * 30}one\ntwo {'b ' * 40}", f"{'a ' * 30}one"),
        (f"{'a ' * 30}end. {'b ' * 40}", f"{'a ' * 30}end."),
        (f"{'字' * 60}。{'文' * 60}", f"{'字' * 60}。"),
        (f"{'a' * 60} {'b' * 60}", "a" * 60),
        ("c" * 120, "c" * 100),
        ("é" * 99 + "e\u0301" * 10, "é" * 99),
    ],
)
def test_a_paragraph_is_cut_where_a_reader_would(text: str, first: str) -> None:
    got = cut(says(text))
    assert got[0] == first
    assert "".join("".join(got).split()) == "".join(text.split())


def test_no_link_and_no_code_is_cut() -> None:
    spans = (
        Span("w " * 35),
        Span("a label of words", (), LINK),
        Span(" and"),
        Span("x y z " * 4, ("code",)),
        Span("."),
    )
    got = pieces((Block(spans=spans),), Frame(100))
    assert [span.text for piece in got for block in piece.document for span in block.spans if span.href] == [
        "a label of words"
    ]
    assert " ".join(words(block.spans) for piece in got for block in piece.document).split() == words(spans).split()
    two = (Span("a" * 40), Span("b", (), LINK), Span("c", ("bold",), LINK), Span("d" * 60))
    assert cut((Block(spans=two),))[0].startswith(f"{'a' * 40}bc ({LINK})")


def test_a_link_longer_than_a_message_is_cut() -> None:
    got = pieces((Block(spans=(Span("l" * 150, (), LINK),)),), Frame(100))
    assert all(block.spans[0].href == LINK for piece in got for block in piece.document)
    assert sum(len(words(block.spans)) for piece in got for block in piece.document) == 150


def test_an_address_longer_than_half_a_message_is_written_out() -> None:
    far = "https://e.org/" + "p" * 60
    spans = (
        Span("a", (), far),
        Span("b", ("bold",), far),
        Span("c"),
        Span(far, (), far),
        Span("e", (), "https://e.org"),
    )
    assert "".join("".join(cut((Block(spans=spans),))).split()) == f"ab({far})c{far}e(https://e.org)"


def test_a_character_longer_than_a_message_is_cut_all_the_same() -> None:
    text = "👩" + "\u200d👩" * 80
    assert "".join(cut(says(text), 64)) == text
    assert "".join(cut((Block("code", code=text),), 64)) == text


def test_headings_go_with_what_follows() -> None:
    title = Block("heading", (Span("Title"),), level=1)
    got = cut((*says("a" * 60), title, *says("b" * 80)))
    assert got == ["a" * 60, f"Title\n\n{'b' * 80}"]
    assert cut((title, Block("code", code="x" * 95))) == ["Title", "x" * 95]


def test_code_is_kept_whole_if_it_can_be() -> None:
    code = Block("code", code="\n".join(["x" * 9] * 9), info="py")
    assert cut((*says("intro"), code), 100, "markdown")[1].count("```") == 2
    long = Block("code", code="\n".join(f"line {number}" for number in range(30)), info="py")
    got = cut((*says("intro"), long), 100, "markdown")
    assert got[0].startswith("intro\n\n```py\nline 0\n")
    assert all(text.count("```") == 2 for text in got)
    wide = Block("code", code="\n".join(["y" * 50] * 4))
    assert cut((*says("z" * 30), wide))[0] == "z" * 30
    assert "".join(cut((Block("code", code="w" * 250),))) == "w" * 250


def test_a_table_longer_than_a_message_is_cut_between_its_rows() -> None:
    rows = tuple(((Span(f"key {number}"),), (Span("value"),)) for number in range(20))
    got = cut((Block("table", rows=rows),), 100, "telegram-html")
    assert len(got) > 2
    assert all(text.startswith("<pre>key") and text.endswith("</pre>") for text in got)


def test_the_marker_of_an_item_stands_once() -> None:
    got = cut((Block(spans=(Span("w " * 80),), depth=1, marker="•"),))
    assert [text[:3] for text in got] == ["• w", "w w"]


def test_a_paragraph_fills_what_is_left_or_waits_for_more_room() -> None:
    assert cut(says("a" * 30, "b " * 60))[0].endswith("b")
    assert cut(says("a" * 80, "b " * 60))[0] == "a" * 80
    assert cut(says("a" * 60, "b" * 90))[0] == "a" * 60
    assert cut((*says("a" * 60), *says("👩" + "\u200d👩" * 60)))[0] == "a" * 60
