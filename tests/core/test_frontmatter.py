"""The head of a SKILL.md, as people and programs write it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.frontmatter import split


def head(text: str) -> dict[str, Any]:
    return split(f"---\n{text}\n---\nbody")[0]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("name: a b\ndescription: it's: fine # no", {"name": "a b", "description": "it's: fine"}),
        ("a: \"x \\\"y\\\" \\u00e9 \\n # z\"\nb: 'it''s'", {"a": 'x "y" é \n # z', "b": "it's"}),
        (
            "a: true\nb: No\nc: null\nd: ~\ne: 12\nf: -3\ng: 1.5",
            {"a": True, "b": False, "c": None, "d": None, "e": 12, "f": -3, "g": "1.5"},
        ),
        ("a:\n  b:\n    c: 1\n  d: 2\ne: 3", {"a": {"b": {"c": 1}, "d": 2}, "e": 3}),
        ("a:\n  - x\n  - y: 1\n    z: 2\n  -\n    - q\nb: 1", {"a": ["x", {"y": 1, "z": 2}, ["q"]], "b": 1}),
        ("a:\n- x\n- y\nb: 1", {"a": ["x", "y"], "b": 1}),
        (
            "a: |\n  one\n    two\n\n  three\nb: >-\n  one\n  two\nc: 1",
            {"a": "one\n  two\n\nthree", "b": "one two", "c": 1},
        ),
        ("a: words that\n  go on\nb: 1", {"a": "words that go on", "b": 1}),
        ("a: {b: 1, 'c d': [x, \"y\", ], }\ne: []", {"a": {"b": 1, "c d": ["x", "y"]}, "e": []}),
        (
            'm:\n  {\n    "o": { "r": { "bins": ["gh"] }, // why\n    },\n  }\nn: 1',
            {"m": {"o": {"r": {"bins": ["gh"]}}}, "n": 1},
        ),
        ("a: {url: https://x.y/z, t: 12:30}", {"a": {"url": "https://x.y/z", "t": "12:30"}}),
        ("# a comment\n\na: 1 # one\n  # two\nb:\n  # three\nc: 3", {"a": 1, "b": None, "c": 3}),
        ("a: 1\njust words\nb: 2", {"a": 1, "b": 2}),
        ('"a b": 1\nc.d-e: 2', {"a b": 1, "c.d-e": 2}),
        ("a: {b: two words, c}", {"a": {"b": "two words"}}),
        ("a: [x: 1, {b: 2", {"a": ["x", 1, {"b": 2}]}),
        ("a:\n  plain words", {"a": "plain words"}),
        ("a: {,b: 1}", {"a": {"b": 1}}),
        ("- a\n- b", {}),
        ("", {}),
        ("a:\tb", {"a": "b"}),
        ("a: # nothing", {"a": None}),
    ],
)
def test_heads(text: str, fields: dict[str, Any]) -> None:
    assert head(text) == fields


def test_the_body() -> None:
    assert split("---\r\na: 1\r\n---\r\n# T\r\n") == ({"a": 1}, "# T\r\n")
    assert split("# no head\n---\n") == ({}, "# no head\n---\n")
    assert split("---\na: 1\nnever closed") == ({}, "---\na: 1\nnever closed")


def test_depth_has_an_end() -> None:
    assert "a" in head("\n".join(f"{'  ' * n}a:" for n in range(99)))
    assert "a" in head("a: " + "[" * 99)


@given(st.lists(st.sampled_from(["a", ":", " ", "- ", "\n", "  ", "{", "}", "[", "]", '"', "'", ",", "|", "#", "\t"])))
def test_anything_is_read_without_a_fault(pieces: list[str]) -> None:
    assert all(isinstance(key, str) for key in head("".join(pieces)))
