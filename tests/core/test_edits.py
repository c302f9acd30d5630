"""Exact replacements: all or none, and a word on why not."""

from __future__ import annotations

import pytest

from garra.core.edits import Edit, apply
from garra.core.errors import ToolFailed


def refused(text: str, *edits: Edit) -> str:
    with pytest.raises(ToolFailed) as caught:
        apply("f.txt", text, edits)
    return caught.value.message


def test_one_and_several() -> None:
    assert apply("f", "a b c", [Edit("b", "x")]) == "a x c"
    assert apply("f", "a b c", [Edit("a", "1"), Edit("1 b", "2")]) == "2 c"
    assert apply("f", "a a", [Edit("a", "b", every=True)]) == "b b"


def test_line_ends_stay() -> None:
    assert apply("f", "one\r\ntwo\r\n", [Edit("one\ntwo", "1\n2\n3")]) == "1\r\n2\r\n3\r\n"
    assert apply("f", "one\ntwo\n", [Edit("one\r\ntwo", "1\r\n2")]) == "1\n2\n"


def test_what_does_not_fit_is_said() -> None:
    assert refused("x", Edit("", "y")) == "f.txt: the old text is empty; to make or replace a whole file use write"
    assert "changes nothing" in refused("x", Edit("x", "x"))
    assert "stands 2 times (lines 1, 2)" in refused("a\na\n", Edit("a", "b"))
    assert "lines 1, 1, 1, 1, 1)" in refused("aaaaaaa", Edit("a", "b"))
    assert refused("x", Edit("x", "y"), Edit("q", "z")).startswith(
        "f.txt: edit 2 of 2: the old text is not in the file"
    )


def test_the_nearest_place_is_named() -> None:
    assert "its first line is line 2" in refused("\n  def f():\n    pass\n", Edit("def f():\n  pass", "x"))
    assert "'def function(a, b):'" in refused("def function(a, b):\n", Edit("def functoin(a, b):", "x"))
    assert refused("abc\n", Edit("zzz zzz", "x")).endswith("Read the file first")
    assert "Read the file" in refused("abc\n", Edit("\n \n\t", "x"))
