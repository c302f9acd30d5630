"""No piece is too long, none breaks a fence, no word is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.chunking import Blocks, chunks, fences, step


def words(pieces: tuple[str, ...]) -> str:
    """All that is said, without space and without the fences that were closed and opened again."""
    joined = "\n".join(pieces)
    return re.sub(r"\s+", "", re.sub(r"^ {0,3}(```|~~~).*$", "", joined, flags=re.M))


LINES = st.lists(
    st.sampled_from(
        ["", "word " * 9, "A sentence. Another one! ", "x" * 70, "句子。" * 8, "```py", "```", "~~~", "  a = 1"]
    ),
    max_size=30,
)


@pytest.mark.req("LOOP-16")
@given(LINES, st.integers(33, 200))
def test_any_text_is_cut_whole(lines: list[str], limit: int) -> None:
    text = "\n".join(lines)
    pieces = chunks(text, limit)
    assert all(len(piece) <= limit for piece in pieces)
    assert words(pieces) == words((text,))
    for piece in pieces[:-1]:
        assert all(piece[fence.start : fence.end].rstrip().endswith(fence.close) for fence in fences(piece))


def test_short_text_is_one_piece() -> None:
    assert chunks("\nhello\n", 100) == ("hello",)
    assert chunks(" \n", 100) == ()
    assert chunks(" " * 40 + "x", 36) == ("x",)


def test_paragraphs_lines_sentences_words() -> None:
    assert chunks("a" * 20 + "\n\n" + "b" * 20, 36) == ("a" * 20, "b" * 20)
    assert chunks("a" * 20 + "\n" + "b" * 20, 36) == ("a" * 20, "b" * 20)
    assert chunks("Hello to all of you. " + "b" * 20, 36) == ("Hello to all of you.", "b" * 20)
    assert chunks("a" * 20 + " " + "b" * 20, 36) == ("a" * 20, "b" * 20)
    assert chunks("a" * 50, 40) == ("a" * 40, "a" * 10)


def test_a_fence_is_kept_whole_where_it_fits() -> None:
    text = "Some words before it.\n\n```py\na = 1\nb = 2\n```"
    assert chunks(text, 40) == ("Some words before it.", "```py\na = 1\nb = 2\n```")


def test_a_long_fence_is_closed_and_opened_again() -> None:
    text = "```py\n" + "".join(f"line {n}\n" for n in range(9)) + "```"
    pieces = chunks(text, 40)
    assert pieces[0] == "```py\nline 0\nline 1\nline 2\nline 3\n```"
    assert pieces[1].startswith("```py\nline 4\n")
    assert chunks("```\n" + "x" * 60 + "\n```", 40)[0] == "```\n" + "x" * 32 + "\n```"


def test_other_units_than_characters() -> None:
    def size(text: str) -> int:
        return len(text.encode("utf-16-le")) // 2

    pieces = chunks("😀" * 40, 32, size)
    assert [size(piece) for piece in pieces] == [32, 32, 16]


def test_fences_of_other_kinds() -> None:
    assert [(one.mark, one.close) for one in fences("~~~~ sh\n```\n~~~\n~~~~ x\n~~~~\n")] == [("~~~~ sh", "~~~~")]
    assert fences("```\nopen")[0].end == 8


def test_blocks_go_out_at_paragraphs_while_words_arrive() -> None:
    waiting, blocks = "", Blocks(10, 40)
    out: list[str] = []
    for delta in ("A first ", "paragraph.\n", "\nMore ", "of it, ", "and a word that is very ", "long here ", "end"):
        waiting, more = step(waiting, delta, blocks)
        out += more
    _, more = step(waiting, "", blocks, last=True)
    assert [*out, *more] == ["A first paragraph.", "More of it, and a word that is very", "long here end"]


def test_blocks_do_not_break_a_fence() -> None:
    text = "```\n" + "a\n\n" * 8 + "```\n\nafter"
    waiting, out = step("", text, Blocks(5, 60))
    assert out == ("```\n" + "a\n\n" * 8 + "```",)
    assert waiting == "after"
