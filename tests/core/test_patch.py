"""The patch format: read, and put into a text."""

from __future__ import annotations

import pytest

from garra.core.errors import ToolFailed
from garra.core.patch import Add, Delete, Hunk, Update, apply, parse


def wrapped(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def refused(*lines: str) -> str:
    with pytest.raises(ToolFailed) as caught:
        parse(wrapped(*lines))
    return caught.value.message


def test_all_operations() -> None:
    patch = wrapped(
        "*** Add File: a.txt", "+one", "+", "*** Delete File: b.txt", "*** Update File: c.txt", "*** Move to: d.txt",
        "@@ def f():", " keep", "-old", "+new", "@@", "-x", "+y", "*** End of File", "*** Add File: empty.txt",
    )  # fmt: skip
    assert parse(patch) == (
        Add("a.txt", "one\n\n"),
        Delete("b.txt"),
        Update(
            "c.txt",
            "d.txt",
            (Hunk("def f():", ("keep", "old"), ("keep", "new")), Hunk("", ("x",), ("y",), last=True)),
        ),
        Add("empty.txt", ""),
    )


def test_a_move_alone_and_a_here_document() -> None:
    assert parse(wrapped("*** Update File: a", "*** Move to: b")) == (Update("a", "b", ()),)
    assert parse("<<'EOF'\n" + wrapped("*** Delete File: a", "") + "\nEOF") == (Delete("a"),)


def test_a_first_hunk_needs_no_mark_and_an_empty_line_is_context() -> None:
    assert parse(wrapped("*** Update File: a", " x", "", "-y")) == (
        Update("a", None, (Hunk("", ("x", "", "y"), ("x", "")),)),
    )
    assert parse(wrapped("*** Update File: a", "-y", "*** End of File", "")) == (
        Update("a", None, (Hunk("", ("y",), (), last=True),)),
    )


def test_what_is_no_patch() -> None:
    for text, words in (("", "begin with"), ("x", "begin with"), ("*** Begin Patch\nx", "end with")):
        with pytest.raises(ToolFailed, match=words):
            parse(text)
    assert refused() == "the patch holds no file"
    assert "expected Add, Update or Delete" in refused("nonsense")
    assert "starts with +" in refused("*** Add File: a", "one")
    assert "expected Add, Update or Delete" in refused("*** Delete File:  ")
    assert "names no file" in refused("*** Update File: a", "*** Move to:  ")
    assert "changes nothing" in refused("*** Update File: a")
    assert "a hunk without lines" in refused("*** Update File: a", "@@", "*** Delete File: b")
    assert "starts with a blank" in refused("*** Update File: a", "@@", "x")


def hunks(*lines: str) -> tuple[Hunk, ...]:
    (update,) = parse(wrapped("*** Update File: f", *lines))
    assert isinstance(update, Update)
    return update.hunks


def test_hunks_are_put_in() -> None:
    assert apply("f", "a\nb\nc\n", hunks(" a", "-b", "+B", " c")) == "a\nB\nc\n"
    assert apply("f", "a\r\nb\r\n", hunks("-b", "+B")) == "a\r\nB\r\n"
    assert apply("f", "a\nb", hunks("-b", "+B")) == "a\nB\n"
    assert apply("f", "a\n", hunks("-a")) == ""
    assert apply("f", "", hunks("+new")) == "new\n"


def test_context_and_order_choose_the_place() -> None:
    text = "def f():\n    x\ndef g():\n    x\n    x\n"
    assert apply("f", text, hunks("@@ def g():", "-    x", "+    y")) == "def f():\n    x\ndef g():\n    y\n    x\n"
    assert apply("f", text, hunks("@@ def g():", "+    first")) == text.replace("g():\n", "g():\n    first\n")
    assert apply("f", text, hunks("-    x", "+    1", "@@", "-    x", "+    2")).count("1") == 1
    assert apply("f", "x\nx\n", hunks("-x", "+y", "*** End of File")) == "x\ny\n"
    assert apply("f", "x\n", hunks("@@", "+last", "*** End of File")) == "x\nlast\n"


def test_blanks_copied_nearly_right() -> None:
    assert apply("f", "  a  \nb\n", hunks("-  a", "+A")) == "A\nb\n"
    assert apply("f", "\ta\nb\n", hunks("-    a", "+A")) == "A\nb\n"


@pytest.mark.parametrize(
    "lines",
    [("-z", "+y"), ("@@ nowhere", "-a"), ("-a", "*** End of File"), ("-1", "-2", "-3", "-4", "*** End of File")],
)
def test_a_hunk_that_is_not_there(lines: tuple[str, ...]) -> None:
    with pytest.raises(ToolFailed, match="hunk 1 of 1 is not in the file"):
        apply("f", "a\nb\n", hunks(*lines))
