"""One text that cannot be read does not cost what came with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.sdk.encoding import DEEPEST, encoded, parsed

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_what_is_written_is_read(value: Any) -> None:
    assert parsed(encoded(value)) == value
    assert parsed(encoded([value, "X"]).replace(b'"X"', b'"\\ud800"')) == [value, "\ufffd"]


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (b'{"a\\udfff":"\\ud83d\\ude00\\ud800x"}', {"a\ufffd": "😀\ufffdx"}),
        (b'["\xff"]', ["\ufffd"]),
        (b'["a\x01b"]', ["a\x01b"]),
        ('["\ud800"]', ["?"]),
        (b"no json", None),
        (b"", None),
        (b'{"ok":tru', None),
    ],
)
def test_what_is_odd_costs_a_letter(raw: bytes | str, read: Any) -> None:
    assert parsed(raw) == read


@pytest.mark.parametrize("depth", [DEEPEST + 1, 5_000, 200_000])
def test_what_is_nested_without_end_costs_itself_alone(depth: int) -> None:
    deep = b'{"a":' * depth + b'"]}"' + b"}" * depth
    found = parsed(b'[{"text":"one ]"},' + deep + b',"\\ud800",[2]]')
    assert (found[0], found[2:]) == ({"text": "one ]"}, ["\ufffd", [2]])
    assert json.dumps(found)


def test_what_never_closes_is_no_json() -> None:
    assert parsed(b"[" * 100_000) is None
    assert parsed(b"]" * 100_000) is None
