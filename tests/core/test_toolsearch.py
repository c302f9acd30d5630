"""Large sets of tools: what is told by name only, and how it is found."""

from __future__ import annotations

import pytest

from garra.core.toolsearch import (
    DIRECT,
    NAMED,
    SIGNATURE,
    Entry,
    Settings,
    deferred,
    listed,
    search,
    signature,
    target,
    terms,
)

TOOLS = (
    Entry("automations", "Schedule a recurring task or a reminder.", {}),
    Entry("web_search", "Search the web.", {"properties": {"query": {"type": "string", "description": "what for"}}}),
    Entry("message", "Send, edit or react in a chat.", {"properties": {"action": {"enum": ["send", "react"]}, "x": 1}}),
    Entry("ask_user", "Ask the person a question.", {}),
    Entry("gateway", "Read or change the configuration.", {}),
)
SIZES = {"read": 2_000, "message": 1_500, "gateway": 1_500}


def test_a_small_set_is_told_in_full_and_a_large_one_in_part() -> None:
    assert deferred(SIZES, Settings(room=5_000)) == ()
    assert deferred(SIZES, Settings(room=4_999)) == ("message", "gateway")
    assert deferred(SIZES, Settings(on=True, room=9_999)) == ("message", "gateway")
    assert deferred(SIZES, Settings(on=False, room=0)) == ()
    assert deferred(SIZES, Settings(room=0, direct=("message",))) == ("gateway",)
    assert deferred({"read": 5_000, "message": 600}, Settings()) == (), "the way to it would cost as much"
    assert deferred(dict.fromkeys(DIRECT, 9_000), Settings()) == ()


def test_names_are_listed_as_far_as_there_is_room() -> None:
    assert listed(("b", "a")) == "a, b"
    assert listed(()) == ""
    many = listed(f"tool_number_{at:03}" for at in range(200))
    assert len(many) <= NAMED + 20
    assert many.endswith(f" and {200 - many.count('tool_')} more")


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("scheduling something", "automations"),
        ("remind me tomorrow", "automations"),
        ("look up the price", "web_search"),
        ("react to a message", "message"),
        ("reactions", "message"),
        ("askUser", "ask_user"),
        ("GATEWAY", "gateway"),
        ("settings", "gateway"),
        ("what for", "web_search"),
    ],
)
def test_what_is_meant_is_found(query: str, first: str) -> None:
    assert search(query, TOOLS, 3)[0].name == first


def test_what_fits_nothing_finds_nothing() -> None:
    assert search("天気", TOOLS, 3) == ()
    assert search("zzz", TOOLS, 3) == ()
    assert search("message", (), 3) == ()
    assert len(search("the web, a chat, a question", TOOLS, 2)) == 2


def test_a_whole_name_comes_first() -> None:
    other = Entry("sender", "message message message", {})
    assert search("message", (other, *TOOLS), 1)[0].name == "message"
    assert search("天気", (Entry("天気", "", {}),), 1)[0].name == "天気"


def test_words_are_compared_without_endings() -> None:
    assert terms("sessions_list") == ("sess", "list")
    assert terms("timeoutSeconds") == ("timeout", "second")
    assert terms("is") == ("is",)


def test_arguments_in_a_line() -> None:
    schema = {
        "properties": {
            "id": {"type": "string"},
            "mode": {"enum": ["a", "b"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "some": {"type": "array"},
            "maybe": {"type": ["string", "null"]},
            "free": {},
        },
        "required": ["id"],
    }
    line = '{ id: string; mode?: "a" | "b"; tags?: string[]; some?: any[]; maybe?: string | null; free?: any }'
    assert signature(schema) == line
    assert signature({}) == "{}"
    long = signature({"properties": {f"argument{at}": {"type": "string"} for at in range(50)}})
    assert len(long) == SIGNATURE - 1
    assert long.endswith("…}")


def test_which_tool_a_call_means() -> None:
    assert target({"id": "message", "args": {"text": "hello", "id": "5"}}) == ("message", {"text": "hello", "id": "5"})
    assert target({"id": "message", "text": "hello"}) == ("message", {"text": "hello"})
    assert target({"id": "message", "args": "no object"}) == ("message", {})
    assert target({}) == ("", {})
