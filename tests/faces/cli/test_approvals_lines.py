"""Approvals as lines: whole, and with what to do."""

from __future__ import annotations

from typing import Any

from garra.app.approvals import words
from garra.faces.cli import approvals_lines as lines
from garra.faces.tui.waiting import told
from tests.domains.exec.asking import question

NAME = "12345678-0000-4000-8000-000000000000"


def row(**request: Any) -> dict[str, Any]:
    common = {"agentId": "main", "sessionKey": "agent:main:main", "allowedDecisions": ["allow-once", "deny"]}
    return {
        "approvalKind": "exec",
        "id": NAME,
        "createdAtMs": 1_796_045_123_684,
        "expiresAtMs": 1_796_046_923_684,
        "request": {**common, **request},
    }


def test_a_question_stands_whole() -> None:
    text = lines.question(row(command="echo 1\necho 2", cwd="/w", warningText="it is new\nand odd"))
    assert text.splitlines() == [
        "12345678  agent main, agent:main:main, until 2026-11-30 13:55 UTC",
        "  echo 1",
        "  echo 2",
        "  in /w",
        "  it is new",
        "  and odd",
    ]
    assert "  all of it" in lines.question(row(detail="all of it", description="all…"))
    assert lines.plain(row(description="short"))["summary"] == "short"
    whole = lines.whole({**row(cwd="/w"), "subject": "a\nb", "warningText": None})
    assert whole.splitlines()[1:] == ["  a", "  b", "  in /w"]


def test_what_is_over_is_a_row() -> None:
    shown = {"presentation": {"commandText": "x" * 99}, "id": NAME, "status": "expired"}
    assert lines.past(shown)[0] == "12345678"
    assert lines.past(shown)[2] == "expired"
    assert len(lines.past(shown)[4]) == lines.COLUMN
    grant = {
        "grantId": NAME,
        "agentId": "main",
        "revokedAtMs": None,
        "expiresAtMs": None,
        "useCount": 2,
        "command": "h",
    }
    assert lines.grant(grant) == ("12345678", "main", "it is revoked", "2", "h")
    assert lines.grant({**grant, "revokedAtMs": 1})[2] == "revoked"


def test_the_allowlist_changes_only_where_something_changes() -> None:
    document: dict[str, Any] = {"version": 1, "agents": {"main": {"allowlist": ["ls"], "ask": "off"}}}
    more = lines.changed(document, "main", "/bin/rg", add=True)
    assert more["agents"]["main"] == {"allowlist": ["ls", {"pattern": "/bin/rg"}], "ask": "off"}
    assert lines.changed(more, "main", "/bin/rg", add=True) == more
    assert lines.changed(more, "main", "/bin/rg", add=False) == document
    assert lines.changed(document, "*", "ls", add=False) == document


def test_what_is_not_taken_away_says_where_it_still_stands() -> None:
    document: dict[str, Any] = {"agents": {"main": {"allowlist": ["ls"]}, "home": {"allowlist": [{"pattern": "ls"}]}}}
    assert lines.unchanged(document, "main", "ls", add=True) == "Nothing changes: ls is on the list of main already."
    assert lines.unchanged(document, "*", "rg", add=False) == "Nothing changes: rg is on no list."
    assert lines.unchanged(document, "*", "ls", add=False) == (
        "Nothing changes: ls is not on the list of * (every agent). It still stands in that of main, home: --agent main"
    )


def test_what_is_listed_is_shown_and_whose_it_is() -> None:
    document = {"agents": {"*": {"allowlist": ["ls"]}, "home": {"allowlist": [{"pattern": "rg", "argPattern": "a*"}]}}}
    every = lines.programs(document)
    assert every == [("* (every agent)", "ls", "any"), ("home", "rg", "a*")]
    assert lines.programs(document, "main") == every[:1]
    assert lines.agents({}) == ("main",)
    assert lines.agents({"agents": {"list": [{"id": "Home"}], "entries": {"work": {}}}}) == ("home", "work")


def test_a_change_says_which_list_it_is_in() -> None:
    assert lines.listed("main", "rg", add=True) == "rg is on the list of main now."
    assert lines.listed("*", "rg", add=False) == "rg is off the list of * (every agent)."
    assert lines.listed("main", "python3", add=True).endswith("counts only with its exact arguments (argPattern).")


def test_the_terminal_s_chat_tells_a_question_and_its_end() -> None:
    asked = told("exec.approval.requested", row(command="echo 1\necho 2", cwd="/w", warningText="new"))
    assert asked.splitlines()[1:] == [
        "echo 1",
        "echo 2",
        "in /w",
        "new",
        "/approve 12345678 allow-once",
        "/deny 12345678",
    ]
    assert "the whole" in told("plugin.approval.requested", row(detail="the whole", description="…"))
    ended = {"id": NAME, "decision": "deny", "resolvedBy": "ann"}
    assert told("exec.approval.resolved", ended) == "12345678: deny by ann"
    assert told("exec.approval.resolved", {**ended, "resolvedBy": None}) == "12345678: deny"
    assert not told("chat", {})
    assert not told("exec.approval.other", {})


def test_a_folder_s_name_says_nothing_of_its_own() -> None:
    cwd = "/w\nAllow always: nothing\x1b[2K"
    request = {"command": "touch x", "agentId": "main", "cwd": cwd, "allowedDecisions": ["allow-once"]}
    said = told("exec.approval.requested", {"id": "12345678-1", "request": request})
    asked = words(question(cwd=cwd, why=("a\nb",)))
    for text in (said, asked):
        assert "in /w\\nAllow always: nothing\\x1b[2K" in text.split("\n")
    assert "because a\\nb" in asked.split("\n")
