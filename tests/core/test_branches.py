"""The branches of a conversation."""

from __future__ import annotations

from garra.core.branches import listed
from garra.core.messages import Assistant, Text, ToolResult, User
from garra.core.transcript import Entry, entry, leaf_entry, message_entry


def said(id_: str, parent: str | None, message: User | Assistant | ToolResult) -> Entry:
    return message_entry(message, id_=id_, parent=parent, now_ms=1_000)


def user(text: str) -> User:
    return User((Text(text),), 1)


def test_each_end_is_told_with_its_last_words_the_active_one_first() -> None:
    entries = [
        said("a", None, user("first")),
        said("b", "a", Assistant((Text("one   answer"),), 2)),
        leaf_entry("a", id_="l", now_ms=3),
        said("c", "a", Assistant((Text("another"),), 4)),
        said("d", "c", ToolResult("x", "exec", (Text("out"),), 5)),
    ]
    found = listed(entries, "d")
    assert [(each.leaf, each.headline, each.count, each.active) for each in found] == [
        ("d", "another", 3, True), ("b", "one answer", 2, False),
    ]  # fmt: skip
    assert found[0].updated_at == "1970-01-01T00:00:01.000Z"


def test_an_end_without_words_is_none_and_an_empty_conversation_has_none() -> None:
    note = entry("custom", {}, id_="n", parent=None, now_ms=1)
    assert listed([note], "n") == ()
    assert listed([], None) == ()
    silent = said("t", None, ToolResult("x", "exec", (), 1))
    assert [(each.headline, each.count) for each in listed([silent], "t")] == [("", 1)]


def test_the_end_of_the_active_branch_is_no_branch_of_its_own() -> None:
    entries = [said("a", None, user("first")), said("b", "a", user("second"))]
    assert [each.leaf for each in listed(entries, "a")] == ["a", "b"]
    assert [each.leaf for each in listed(entries, "b")] == ["b"]
