"""Every fault of an approvals document is told, a line each, with its place."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core.errors import UserError
from garra.core.execdocument import EMPTY, MOST, check, digest, faults


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "the document is no object"),
        ({"version": 2}, "version: 2 is not 1"),
        ({"defaults": 3}, "defaults: it is no object"),
        ({"defaults": {"security": "all"}}, "defaults.security: 'all' is none of deny, allowlist, full"),
        ({"defaults": {"ask": "maybe"}}, "defaults.ask: 'maybe' is none of off, on-miss, always"),
        ({"defaults": {"askFallback": 1}}, "defaults.askFallback: 1 is none of"),
        ({"agents": []}, "agents: it is no object"),
        ({"agents": {"main": []}}, "agents.main: it is no object"),
        ({"agents": {"main": {"allowlist": "ls"}}}, "agents.main.allowlist: it is no list"),
        ({"agents": {"main": {"allowlist": [3]}}}, "agents.main.allowlist.0: it is neither"),
        ({"agents": {"main": {"allowlist": [{}]}}}, "agents.main.allowlist.0.pattern"),
        ({"agents": {"*": {"allowlist": [{"pattern": "ls", "argPattern": 1}]}}}, "argPattern: it is no text"),
        ({"agents": {"*": {"allowlist": [{"pattern": "ls", "argPattern": "("}]}}}, "no regular expression"),
        ({"agents": {"*": {"allowlist": [{"pattern": "ls", "cwd": 1}]}}}, "cwd: it is no text"),
        ({"agents": {"*": {"allowlist": [{"pattern": "ls", "expiresAt": True}]}}}, "expiresAt: it is no number"),
    ],
)
def test_a_fault_is_told_with_its_place(document: Any, told: str) -> None:
    (line,) = faults(document)
    assert told in line
    with pytest.raises(UserError):
        check(document)


def test_what_is_sound_is_kept_whole() -> None:
    document = {
        "version": 1,
        "socket": {"path": "/x"},
        "defaults": {"security": "allowlist", "ask": "on-miss", "askFallback": "deny"},
        "agents": {
            "main": {"allowlist": ["ls", {"pattern": "/bin/rg", "argPattern": "^-n", "note": "mine"}]},
            "b": None,
        },
    }
    assert check(document) == document
    assert check({}) == EMPTY
    assert digest(EMPTY) != digest(document)


def test_many_faults_are_counted() -> None:
    with pytest.raises(UserError) as told:
        check({"agents": {"main": {"allowlist": [{} for _ in range(MOST + 5)]}}})
    assert len(told.value.message.splitlines()) == MOST + 1
    assert told.value.message.endswith("and 5 more")
