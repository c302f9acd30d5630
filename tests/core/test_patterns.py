"""A pattern that is compiled later is like any other."""

from __future__ import annotations

import re

import pytest

from garra.core.patterns import later


def test_it_does_what_a_pattern_does() -> None:
    word = later(r"(?P<first>[a-z])[a-z]+", re.I)
    found = word.match("Cat and dog")
    assert found is not None
    assert found["first"] == "C"
    assert word.sub("x", "Cat, dog") == "x, x"
    assert [each.group() for each in word.finditer("a bc de")] == ["bc", "de"]
    assert word.findall("ab") == word.findall("ab") == ["a"]
    assert word.groupindex == {"first": 1}
    assert later(rb"\d+").split(b"a1b22c") == [b"a", b"b", b"c"]


def test_a_fault_shows_with_the_first_use() -> None:
    broken = later("(")
    with pytest.raises(re.error):
        broken.match("x")
