from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from garra.core.merge import Change, changes, deep, patched

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)


def test_later_objects_win_key_by_key() -> None:
    assert deep({"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"c": [2], "e": 3}}) == {
        "a": {"b": 1, "c": [2], "e": 3},
        "d": 1,
    }
    assert deep({"a": 1}, [2]) == [2]


def test_a_patch_sets_removes_and_merges_by_id() -> None:
    old = {"a": 1, "b": {"c": 1, "d": 2}, "m": [{"id": "x", "n": 1}, {"id": "y"}], "l": [1, 2]}
    patch = {"a": None, "b": {"d": 3}, "m": [{"id": "x", "n": 2}, {"id": "z", "o": None}], "l": [3], "n": {"o": None}}
    assert patched(old, patch) == {
        "b": {"c": 1, "d": 3},
        "m": [{"id": "x", "n": 2}, {"id": "y"}, {"id": "z"}],
        "l": [3],
        "n": {},
    }
    assert patched([{"n": 1}], [{"id": "x"}]) == [{"id": "x"}]
    assert patched([{"id": "x"}], []) == []


def applied(tree: Any, edits: list[Change]) -> Any:
    for edit in edits:
        if not edit.path:
            return edit.value
        holder = tree
        for part in edit.path[:-1]:
            holder = holder[part]
        if edit.gone:
            del holder[edit.path[-1]]
        elif isinstance(holder, list) and edit.path[-1] == len(holder):
            holder.append(edit.value)
        else:
            holder[edit.path[-1]] = edit.value
    return tree


@given(JSON, JSON)
def test_the_changes_lead_from_old_to_new(old: Any, new: Any) -> None:
    assert applied(old, list(changes(old, new))) == new


def test_nothing_changes_between_equals() -> None:
    assert not list(changes({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}))
    assert list(changes({"a": 1}, {"a": True})) == [Change(("a",), value=True)]
