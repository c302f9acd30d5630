"""What another program wrote, in our form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from garra.core import foreign, taint, transcript
from garra.core.messages import Assistant, User


def line(**body: Any) -> bytes:
    return json.dumps(body).encode()


HEAD = line(type="session", version=3, id="s1", timestamp="2026-12-01T00:00:00.000Z", cwd="/home/ann")
USER = line(type="message", id="a", parentId=None, message={"role": "user", "content": "hello", "timestamp": 1})


def result(name: str, **more: Any) -> bytes:
    message = {"role": "toolResult", "toolCallId": "c", "toolName": name, "content": [], "timestamp": 2, **more}
    return line(type="message", id=f"r-{name}", parentId="a", message=message)


def test_a_session_row_keeps_its_place_and_loses_the_snapshots() -> None:
    place = {"channel": "telegram", "to": "telegram:1", "accountId": "default"}
    row = foreign.row({"sessionId": "s1", "label": "x", "skillsSnapshot": {}, "delivery": {"context": place}})
    assert row == {
        "sessionId": "s1", "label": "x", "deliveryContext": place, "lastChannel": "telegram", "lastTo": "telegram:1",
        "lastAccountId": "default",
    }  # fmt: skip
    assert foreign.row({"delivery": {"kind": "internal"}}) == {}
    assert foreign.row({"delivery": "odd", "deliveryContext": place}) == {"deliveryContext": place}
    assert foreign.row({"delivery": {"context": place}, "deliveryContext": {}}) == {"deliveryContext": {}}


def test_a_transcript_keeps_its_lines_and_gets_our_version() -> None:
    kept, lost = foreign.lines([HEAD, USER + b"\r"], "OpenClaw")
    loaded = transcript.load(b"\n".join(kept))
    assert lost == 0
    assert loaded.header["version"] == transcript.VERSION
    assert kept[1] == USER
    assert [entry.message.text for entry in loaded.entries if entry.message] == ["hello"]


def test_what_is_no_line_is_left_out_and_counted() -> None:
    rows = [USER, HEAD, b"{broken", b"[1]", b"\xff", line(type="message"), USER]
    kept, lost = foreign.lines(rows, "OpenClaw")
    assert len(kept) == 2
    assert lost == 5


@pytest.mark.parametrize("name", ["exec", "read", "memory_search"])
def test_answers_of_this_machine_are_not_marked(name: str) -> None:
    kept, _ = foreign.lines([HEAD, result(name)], "OpenClaw")
    assert b"marks" not in kept[1]


def test_what_a_tool_brought_and_what_a_group_wrote_is_marked_from_outside() -> None:
    kept, _ = foreign.lines([HEAD, USER, result("web_fetch"), result("x", marks=[])], "OpenClaw", group=True)
    entries = transcript.load(b"\n".join(kept)).entries
    marks = [taint.of(entry.message.meta) for entry in entries if entry.message is not None]
    assert [mark[0].source if mark else None for mark in marks] == ["group", "tool", None]
    assert marks[1][0].where == "web_fetch (OpenClaw)"


def test_plain_words_become_a_transcript() -> None:
    said: list[dict[str, Any]] = [{"role": "user", "text": "hi", "ts": 5}, {"role": "assistant", "text": "ho"}]
    made = transcript.load(b"\n".join(foreign.told("s1", "/home", said, 7)))
    shown = transcript.visible(transcript.branch({entry.id: entry for entry in made.entries}, "s1-2"))
    assert [type(each) for each in shown] == [User, Assistant]
    assert [each.text for each in shown] == ["hi", "ho"]
    assert [each.timestamp for each in shown] == [5, 7]


def test_notes_go_behind_what_stands_there_once() -> None:
    once = foreign.joined("mine\n", "theirs\n", "MEMORY.md")
    assert once == "mine\n\n<!-- imported from MEMORY.md -->\ntheirs\n"
    assert foreign.joined(once, "theirs", "MEMORY.md") == once
    assert foreign.joined("", "theirs", "M") == "<!-- imported from M -->\ntheirs\n"


def test_a_row_shows_the_first_words_of_a_person_and_the_last_words() -> None:
    said = [{"role": "assistant", "text": "ho"}, {"role": "user", "text": " hi   there "}]
    assert foreign.titles(foreign.told("s1", "", said, 7)) == {
        "derivedTitle": "hi there", "lastMessagePreview": "hi there"
    }  # fmt: skip
    assert foreign.titles((HEAD, result("exec"))) == {}
