"""Which conversations are one person's, and what of others' is theirs in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from garra.core.errors import UserError
from garra.core.forgetting import GONE, Person, Report, family, media, own, person, without

ANN = Person("telegram", "1001")


def said(role: str = "user", **more: Any) -> bytes:
    message = {"role": role, "content": "zanzibar", "timestamp": 1, "idempotencyKey": "k", **more}
    return json.dumps({"type": "message", "id": "a", "parentId": None, "message": message}).encode()


def provenance(*ids: str, channel: str = "telegram", account: str = "default") -> dict[str, Any]:
    return {"channel": channel, "accountId": account, "messages": [{"senderId": each} for each in ids]}


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("telegram:1001", ANN),
        ("telegram:work:1001", Person("telegram", "1001", "work")),
        ("matrix:@ann:example.org", Person("matrix", "@ann:example.org")),
    ],
)
def test_a_person_is_named_by_channel_and_id(text: str, who: Person) -> None:
    assert person(text) == who
    assert who.shown.startswith(who.channel)


@pytest.mark.parametrize("text", ["", "ann", "telegram:", ":1001"])
def test_what_names_nobody_is_said_so(text: str) -> None:
    with pytest.raises(UserError, match="CHANNEL:ID"):
        person(text)


def test_their_own_conversations_are_the_direct_ones_and_what_these_began() -> None:
    assert own("agent:main:telegram:direct:1001", ANN)
    assert own("agent:main:telegram:work:direct:1001", ANN)
    assert own("agent:main:direct:1001", ANN)
    assert not own("agent:main:telegram:group:1001", ANN)
    assert not own("agent:main:signal:direct:1001", ANN)
    assert not own("agent:main:telegram:direct:10011", ANN)
    assert not own("agent:main:telegram:home:direct:1001", Person("telegram", "1001", "work"))
    assert own("agent:main:telegram:work:direct:1001", Person("telegram", "1001", "work"))
    parents = {
        "agent:main:telegram:direct:1001": None, "agent:main:subagent:x": "agent:main:telegram:direct:1001",
        "agent:main:subagent:y": "agent:main:subagent:x", "agent:main:main": None,
    }  # fmt: skip
    assert family(parents, ANN) == {*parents} - {"agent:main:main"}


def test_their_message_in_a_group_loses_its_words_and_keeps_its_place() -> None:
    gone = without(said(provenance=provenance("7", "1001")), ANN)
    assert gone is not None
    body = json.loads(gone)
    assert (body["id"], body["message"]["content"][0]["text"]) == ("a", GONE)
    assert body["message"]["idempotencyKey"] == "k"
    assert b"zanzibar" not in gone
    moved = {"senderId": "1001", "transport": {"channel": "telegram"}}
    assert without(said(__openclaw=moved), ANN) is not None
    assert without(said(__openclaw={"senderId": "1001"}), ANN) is not None


@pytest.mark.parametrize(
    "line",
    [
        b"{torn", b"\xff", b"[1]", b'{"type":"session"}', said("assistant", provenance=provenance("1001")), said(),
        said(provenance=provenance("7")), said(provenance=provenance("1001", channel="signal")),
        said(provenance={"channel": "telegram", "messages": "odd"}),
        said(__openclaw={"senderId": "1001", "transport": {"channel": "signal"}}),
    ],
)  # fmt: skip
def test_what_is_not_theirs_stays_as_it_is(line: bytes) -> None:
    assert without(line, ANN) is None


def test_one_account_is_only_that_one() -> None:
    assert without(said(provenance=provenance("1001")), Person("telegram", "1001", "work")) is None
    assert without(said(provenance=provenance("1001", account="work")), Person("telegram", "1001", "work")) is not None


def test_names_of_files_are_found_and_the_report_says_all() -> None:
    assert list(media(b'{"text":"[media://in/0af1] and media://tools/b-2"}')) == ["in/0af1", "tools/b-2"]
    assert Report(("k",), 1, 2, 3, 4, 5, 6, ("MEMORY.md",), 7, 8, ("a: no",)).shown() == {
        "conversations": ["k"], "lines": 1, "received": 2, "sent": 3, "files": 4, "pairings": 5, "ledgerRows": 6,
        "mentions": ["MEMORY.md"],
        "promoted": 7,
        "dreamt": 8,
        "left": ["a: no"],
    }  # fmt: skip
