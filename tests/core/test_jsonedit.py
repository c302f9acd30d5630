from __future__ import annotations

import copy
import json
import re
from typing import Any

import pyjson5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core import json5
from garra.core.dotted import Path
from garra.core.errors import UserError
from garra.core.jsonedit import put, remove, rename, replace_texts
from tests.core.test_merge import JSON

HAND = """// my file
{
  // where it listens
  gateway: {
    port: 18789, // the port
    bind: 'loopback',
  },
  agents: { defaults: { model: "a/b" } }, /* inline */
  list: [1, 2, 3],
  empty: {},
  "odd key": null // last
}
"""


@pytest.mark.req("BOOT-14")
def test_an_edit_leaves_the_rest_as_it_was_written() -> None:
    text = HAND
    for path, value in [
        (("gateway", "port"), 1),
        (("gateway", "auth", "token"), "x"),
        (("agents", "defaults", "workspace"), "~/w"),
        (("agents", "list", 0, "id"), "main"),
        (("list", 3), {"a": 1}),
        (("empty", "x"), True),
        (("new",), {"b": {"c d": 1}}),
    ]:
        text = put(text, path, value)
    assert (
        text
        == """// my file
{
  // where it listens
  gateway: {
    port: 1, // the port
    bind: 'loopback',
    auth: {
      token: "x"
    },
  },
  agents: { defaults: { model: "a/b", workspace: "~/w" }, list: [{"id": "main"}] }, /* inline */
  list: [1, 2, 3, {"a": 1}],
  empty: {
    x: true
  },
  "odd key": null, // last
  new: {
    b: {
      "c d": 1
    }
  }
}
"""
    )


@pytest.mark.req("BOOT-14")
def test_what_is_removed_takes_no_comment_with_it() -> None:
    text = HAND
    paths: list[Path] = [
        ("gateway", "port"),
        ("list", 0),
        ("list", 1),
        ("empty",),
        ("odd key",),
        ("agents",),
        ("no", "x"),
    ]
    for path in paths:
        text = remove(text, path)
    assert (
        text
        == """// my file
{
  // where it listens
  gateway: {
    // the port
    bind: 'loopback',
  },
  /* inline */
  list: [2]
  // last
}
"""
    )


def test_plain_json_stays_plain_json() -> None:
    text = '{\n  "a": 1,\n  "b": {\n    "c": 2\n  }\n}\n'
    for edit in (put(text, ("b", "d"), [1]), put(text, ("z",), {}), remove(text, ("b",)), remove(text, ("b", "c"))):
        json.loads(edit)
    assert remove(text, ("b", "c")) == '{\n  "a": 1,\n  "b": {}\n}\n'
    assert remove(text, ("b",)) == '{\n  "a": 1\n}\n'
    assert put(text, ("b",), 1) == '{\n  "a": 1,\n  "b": 1\n}\n'


def test_small_shapes() -> None:
    assert put("", ("a",), 1) == '{\n  "a": 1\n}\n'
    assert put("{}", ("a",), 1) == '{\n  "a": 1\n}'
    assert put('{"a":1}', ("b",), 2) == '{"a":1, "b": 2}'
    assert put("{a:1,}", ("b",), 2) == "{a:1, b: 2,}"
    assert put("[\n\t1,\n\t2\n]", (2,), 3) == "[\n\t1,\n\t2,\n\t3\n]"
    assert put("{ /* c */ }", ("a",), 1) == '{ /* c */ "a": 1}'
    assert put("{ // c\n}", ("a",), 1) == '{ // c\n  "a": 1\n}'
    assert put("{a: {b: 1\n}}", ("a", "c"), 1) == "{a: {b: 1,\n  c: 1\n}}"
    assert put("{a: 1}", (), {"b": 2}) == "{\n  b: 2\n}"
    assert put("{a: 1, a: 2}", ("a",), 3) == "{a: 1, a: 3}"
    assert remove("{a: 1, a: 2}", ("a",)) == "{}"
    assert remove('{"a":1,"b":2}', ("a",)) == '{"b":2}'
    assert remove("{ a: 1 /* x */ }", ("a",)) == "{ /* x */ }"
    assert remove("{a:1}", ()) == "{a:1}"
    assert put("{a: {}}", ("l", 0), 1) == "{a: {}, l: [1]}"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("a", "b"), "a holds a single value"),
        (("l", "x"), "l holds a list"),
        (("l", 5), "only 1 entries"),
        ((0,), "the file holds an object"),
        (("n", 2), r"a new list begins at \[0\]"),
    ],
)
def test_says_why_nothing_can_be_set_there(path: Path, words: str) -> None:
    with pytest.raises(UserError, match=words):
        put("{a: 1, l: [1]}", path, 1)


def test_texts_are_replaced_in_place() -> None:
    text = "{a: 'x', b: [1, 'y']}"
    spans = [(node, '"*"') for _, node in json5.leaves(json5.parse(text)) if node.kind == "text"]
    assert replace_texts(text, spans) == '{a: "*", b: [1, "*"]}'


def comments(text: str) -> set[str]:
    return set(re.findall(r"/\*\d+\*/", text))


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Any]:
    """A tree as somebody might have written it: bare keys or quoted, on lines or not, with numbered comments."""
    tree: Any = draw(st.dictionaries(st.sampled_from(["a", "b", "c d"]), JSON, min_size=1, max_size=3))
    source = json.dumps(tree, indent=draw(st.sampled_from([None, 2, "\t"])))
    if draw(st.booleans()):
        source = re.sub(r'"([a-d])":', r"\1:", source)
    pieces = re.split(r"(?<=[\[{,:\n])", source)
    marks = draw(st.lists(st.booleans(), min_size=len(pieces), max_size=len(pieces)))
    numbered = enumerate(zip(pieces, marks, strict=True))
    text = "".join(piece + (f"/*{number}*/" if mark else "") for number, (piece, mark) in numbered)
    try:
        same = pyjson5.decode(text) == tree
    except ValueError:
        same = False
    return (text if same else source), tree


def places(tree: Any, at: Path = ()) -> list[Path]:
    below = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path for part, value in below for path in ((*at, part), *places(value, (*at, part)))]


@given(written(), st.data())
def test_any_edit_changes_that_place_alone_and_loses_no_comment(source: tuple[str, Any], data: st.DataObject) -> None:
    text, tree = source
    path = data.draw(st.sampled_from(places(tree)))
    wanted = copy.deepcopy(tree)
    holder = wanted
    for part in path[:-1]:
        holder = holder[part]
    if data.draw(st.booleans()):
        edited, lost = remove(text, path), comments(written_at(text, path))
        del holder[path[-1]]
    else:
        lost = set()
        new = "key" if isinstance(path[-1], str) else len(holder)
        edited = put(text, (*path[:-1], new), 7)
        if isinstance(holder, dict):
            holder["key"] = 7
        else:
            holder.append(7)
    assert pyjson5.decode(edited) == wanted
    assert comments(text) - lost <= comments(edited)


def written_at(text: str, path: Path) -> str:
    """The source of one member or item, its key included."""
    root = json5.parse(text)
    node, above = json5.find(root, path), json5.find(root, path[:-1])
    assert node is not None
    assert above is not None
    start = next((member.start for member in above.members if member.value == node), node.start)
    return text[start : node.end]


@pytest.mark.parametrize(
    ("text", "path", "key", "wanted"),
    [
        ('{"prot": 1} // kept', ("prot",), "port", '{"port": 1} // kept'),
        ("{a: {'prot': 1}}", ("a", "prot"), "port", "{a: {'port': 1}}"),
        ("{prot : 1}", ("prot",), "port", "{port : 1}"),
        ("{prot: 1}", ("prot",), "a-b", '{"a-b": 1}'),
        ("{prot: 1}", ("other",), "port", "{prot: 1}"),
        ("{a: [1]}", ("a", 0), "port", "{a: [1]}"),
    ],
)
def test_a_key_is_renamed_as_it_was_written(text: str, path: Path, key: str, wanted: str) -> None:
    assert rename(text, path, key) == wanted
