from __future__ import annotations

import json
from typing import Any

import pyjson5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core import json5
from garra.core.json5 import Broken, Node, find, leaves, line_of, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


def value(text: str, node: Node) -> Any:
    """The tree's values, by the fast parser for each single one."""
    if node.kind == "object":
        return {member.key: value(text, member.value) for member in node.members}
    if node.kind == "list":
        return [value(text, item.value) for item in node.items]
    return pyjson5.decode(text[node.start : node.end])


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_sees_the_same_as_the_fast_parser(tree: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(tree, indent=indent, ensure_ascii=ascii_only)
    assert value(text, parse(text)) == tree


ODD = """\ufeff// first
{ /* a
b */ 'single': "x\\
y", bare_$1: +.5e3, h\\u0041: 0xFF, "esc\\x41\\n\\q": -Infinity,
  list: [1, NaN, [], {}, // end
  ], null: null, }
"""


def test_reads_all_of_json5() -> None:
    root = parse(ODD)
    assert [member.key for member in root.members] == ["single", "bare_$1", "hA", "escA\nq", "list", "null"]
    assert [len(member.value.items) for member in root.members] == [0, 0, 0, 0, 4, 0]
    assert [ODD[node.start : node.end] for _, node in leaves(root)][1:5] == ["+.5e3", "0xFF", "-Infinity", "1"]
    assert line_of(ODD, root, ("list", 1)) == 5
    assert line_of(ODD, root, ("list", 9, "x")) == 5
    assert find(root, ("list", 9)) is None
    assert find(root, ("nope", "x")) is None


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("{ a: 1,\n  b 2 }", 2, 5, "expected a colon after the key 'b'"),
        ("{ a: 1\n  b: 2 }", 2, 3, "expected a comma or }, found 'b'"),
        ("[1 2]", 1, 4, "expected a comma or ], found '2'"),
        ("{ a: }", 1, 6, "expected a value, found '}'"),
        ("{ a: 'x\n' }", 1, 6, "never closed"),
        ("{ 1a: 2 }", 1, 3, "expected a key or }"),
        ("{ , }", 1, 3, "expected a key or }"),
        ("{} x", 1, 4, "expected the end of the file"),
        ("/* open", 1, 1, "comment is never closed"),
        ("{ a: [", 1, 7, "found the end of the file"),
        ("{ a: tru\n }", 1, 6, "expected a value"),
        ("[" * 300, 1, 201, "nested too deeply"),
    ],
)
def test_a_fault_has_its_place(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(Broken) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in caught.value.message


def test_names_the_end_of_a_line() -> None:
    assert json5._name("\n") == "the end of the line"
