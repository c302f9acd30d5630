"""What becomes of each piece that another program holds."""

from __future__ import annotations

import pytest

from garra.core.migration import Chat, Found, Here, Item, Kind, Plan, Wanted, plan

CHAT = Chat("agent:main:main", "main", {"sessionId": "s1"}, (b"{}",))


def decided(item: Item, here: Here | None = None, wanted: Wanted | None = None) -> Item:
    return plan(Found("openclaw", "/from", (item,)), here or Here(), wanted or Wanted()).items[0]


def test_what_is_new_is_planned_in_the_order_in_which_it_is_done() -> None:
    items = (Item("s", "session", "chat", CHAT), Item("c", "config", "config", "{}"), Item("m", "manual", "hooks"))
    made = plan(Found("openclaw", "/from", items, ("a warning",)), Here(), Wanted())
    assert [(item.id, item.state) for item in made.items] == [("c", "planned"), ("s", "planned"), ("m", "manual")]
    assert made.counts() == {"planned": 2, "manual": 1}
    assert made.conflicts == ()
    shown = made.shown()
    assert shown["summary"] == {"total": 3, "planned": 2, "manual": 1}
    assert shown["warnings"] == ["a warning"]
    assert "content" not in shown["items"][0]


def test_keys_are_left_where_nobody_asked_for_them() -> None:
    item = Item("auth:main", "auth", "logins", {}, secret=True)
    assert decided(item).state == "skipped"
    assert "--include-secrets" in decided(item).note
    taken = decided(item, wanted=Wanted(secrets=True))
    assert (taken.state, taken.shown()["sensitive"]) == ("planned", True)


def test_only_what_was_named_is_taken_by_its_id_or_its_kind() -> None:
    item = Item("skill:tea", "skill", "tea", ())
    assert decided(item, wanted=Wanted(only=frozenset({"config"}))).state == "skipped"
    assert decided(item, wanted=Wanted(only=frozenset({"skill"}))).state == "planned"
    assert decided(item, wanted=Wanted(only=frozenset({"skill:tea"}))).state == "planned"


HERE = Here(True, frozenset({"agent:main:main"}), frozenset({"f"}), documents=frozenset({"approvals", "cron", "auth"}))


@pytest.mark.parametrize(
    ("kind", "content"),
    [("config", "{}"), ("session", CHAT), ("approvals", {}), ("cron", {}), ("auth", {}), ("workspace", ())],
)
def test_what_stands_here_is_left_unless_the_owner_says_overwrite(kind: Kind, content: object) -> None:
    item = Item("f", kind, "one", content)
    assert decided(item, HERE).state == "conflict"
    assert plan(Found("x", "/x", (item,)), HERE, Wanted()).conflicts[0].id == "f"
    assert decided(item, HERE, Wanted(overwrite=True)).state == "planned"
    same = Here(True, HERE.sessions, HERE.files, frozenset({"f"}), HERE.documents)
    assert (decided(item, same).state, decided(item, same).note) == ("skipped", "is here already")


def test_what_is_settled_already_stays_so_and_an_empty_plan_is_one() -> None:
    assert decided(Item("f", "skill", "one", state="skipped", note="why")).note == "why"
    assert Plan(Found("x", "/x")).counts() == {}
    assert CHAT.session_id == "s1"
