"""Whose memories a turn may find: one's own, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core.memory_sight import Viewer, indexed, owner_of, sees, viewer

ANN, BOB = "telegram:default:1", "telegram:default:2"
ANNS, BOBS = "agent:main:telegram:default:direct:1", "agent:main:telegram:default:direct:2"
GROUP = "agent:main:telegram:group:-100"
OWNERS = ("telegram:9", "7")
ROWS = ("", ANN, BOB, "telegram:default:9", "slack:work:7", f"key:{GROUP}", f"key:{ANNS}", "telegram:other:1")


def seen(who: Viewer) -> set[str]:
    return {row for row in ROWS if sees(who, row)}


@pytest.mark.parametrize(
    ("who", "rows"),
    [
        (Viewer("agent:main:main", owner=True, owners=OWNERS), {"", "telegram:default:9", "slack:work:7"}),
        (Viewer("agent:main:main", owner=True), {""}),
        (Viewer("x", "telegram:default:9", owner=True, owners=OWNERS), {"", "telegram:default:9", "slack:work:7"}),
        (Viewer(ANNS, ANN), {ANN, f"key:{ANNS}"}),
        (Viewer(BOBS, BOB), {BOB}),
        (Viewer("agent:main:main", ANN), {ANN}),
        (Viewer(ANNS, ANN, links={"ann": ["telegram:1"]}), {ANN, "telegram:other:1", f"key:{ANNS}"}),
        (Viewer(GROUP, ANN, room=True), {f"key:{GROUP}"}),
        (Viewer(GROUP, "", owner=True, room=True, owners=OWNERS), {f"key:{GROUP}"}),
        (Viewer("agent:main:subagent:1"), set()),
        (Viewer("", ""), set()),
        (Viewer("x", "telegram"), set()),
        (Viewer("x", "telegram:default:"), set()),
        (Viewer("x", owner=True, owners=("",)), {""}),
    ],
)
def test_a_turn_finds_its_own(who: Viewer, rows: set[str]) -> None:
    assert seen(who) == rows


@pytest.mark.parametrize(
    ("key", "who", "rows"),
    [
        (GROUP, Viewer("", owner=True, owners=OWNERS), {f"key:{GROUP}"}),
        (ANNS, Viewer("", owner=True, owners=OWNERS), {f"key:{ANNS}"}),
        (ANNS, Viewer("", ANN), {ANN, f"key:{ANNS}"}),
        ("agent:main:telegram:default:direct:9", Viewer("", owner=True, owners=OWNERS),
         {"", "telegram:default:9", "slack:work:7"}),
        ("agent:main:telegram:direct:7", Viewer("", owner=True, owners=OWNERS),
         {"", "telegram:default:9", "slack:work:7"}),
        ("agent:main:direct:9", Viewer("", owner=True, owners=OWNERS), {"", "telegram:default:9", "slack:work:7"}),
        ("agent:main:direct:8", Viewer("", owner=True, owners=OWNERS), set()),
        ("agent:main:main", Viewer("", owner=True), {""}),
    ],
)  # fmt: skip
def test_where_it_is_asked_narrows_what_is_found(key: str, who: Viewer, rows: set[str]) -> None:
    assert seen(viewer(key, who)) == rows


def meta(*senders: str, **more: Any) -> dict[str, Any]:
    told = {"kind": "external_user", "channel": "telegram", "accountId": "default", "chatType": "direct"}
    return {"provenance": {**told, "messages": [{"senderId": each} for each in senders], **more}}


@pytest.mark.parametrize(
    ("key", "told", "owner"),
    [
        ("agent:main:main", {}, ""),
        ("agent:main:main", meta("1"), ANN),
        ("agent:main:main", meta("1", "2"), "key:agent:main:main"),
        ("agent:main:main", meta("1", chatType="group"), "key:agent:main:main"),
        ("agent:main:main", meta(messages="1"), "key:agent:main:main"),
        ("agent:main:main", meta(messages=["1"]), "key:agent:main:main"),
        ("agent:main:main", {"provenance": "x"}, ""),
        ("agent:main:main", {"provenance": {"kind": "broadcast"}}, ""),
        (GROUP, meta("1"), f"key:{GROUP}"),
        (ANNS, {}, f"key:{ANNS}"),
        (ANNS, meta("1"), ANN),
        ("agent:main:work", {}, ""),
    ],
)
def test_a_row_has_one_owner(key: str, told: dict[str, Any], owner: str) -> None:
    assert owner_of(key, told) == owner


def test_conversations_that_no_person_has_are_not_remembered() -> None:
    keys = ("agent:main:main", ANNS, GROUP, "agent:main:subagent:1", "cron:x", "hook:x", "agent:main:acp:1")
    assert [indexed(key) for key in keys] == [True] * 3 + [False] * 4
