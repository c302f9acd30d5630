"""Which agent answers, in which session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from garra.core.ids import AgentId
from garra.core.routing import (
    LEVELS,
    Binding,
    Settings,
    Spot,
    bindings,
    pick,
    route,
)

TOPIC = Spot("telegram", "default", "group", "-100", thread="7", guild="g", team="t", roles=("admin", "dev"))


def row(agent: str, **match: Any) -> dict[str, Any]:
    return {"agentId": agent, "match": {"channel": "telegram", **match}}


EIGHT = [
    row("channel", accountId="*"),
    row("account", accountId="default"),
    row("team", teamId="t", accountId="*"),
    row("guild", guildId="g", accountId="*"),
    row("guild-roles", guildId="g", roles=["dev"], accountId="*"),
    row("peer-kind", peer={"kind": "group", "id": "*"}, accountId="*"),
    row("parent", peer={"kind": "group", "id": "-100"}, accountId="*"),
    row("peer", peer={"kind": "group", "id": "-100:topic:7"}, accountId="*"),
]


@pytest.mark.req("CH-06", "MSG-07")
def test_the_closest_binding_wins_one_after_the_other() -> None:
    rows = list(bindings(EIGHT))
    order = []
    while rows:
        found, name = pick(rows, TOPIC, Settings())
        assert found is not None
        assert found.agent == name
        order.append(name)
        rows.remove(found)
    assert order == list(LEVELS)
    assert pick((), TOPIC, Settings()) == (None, "default")
    assert route((), TOPIC, Settings("home")).agent == "home"


def test_all_fields_of_a_binding_must_match() -> None:
    both = bindings([row("a", guildId="g", teamId="other", accountId="*")])
    assert pick(both, TOPIC, Settings())[0] is None
    for change in ({"channel": "discord"}, {"guild": ""}, {"roles": ("guest",)}, {"account": "two"}):
        spot = replace(TOPIC, **change)
        assert pick(bindings([row("a", guildId="g", roles=["dev"], accountId="default")]), spot, Settings())[0] is None
    assert pick(bindings([row("a", peer={"kind": "channel", "id": "*"})]), TOPIC, Settings())[0] is None
    assert pick(bindings([row("a", peer={"kind": "direct", "id": "-100"})]), TOPIC, Settings())[1] == "parent"
    person = Spot("telegram", "default", "direct", "42")
    assert pick(bindings([row("a", peer={"kind": "dm", "id": "42"})]), person, Settings())[1] == "peer"
    assert pick(bindings([row("a", peer={"kind": "dm", "id": "43"})]), person, Settings())[0] is None


def test_the_first_of_a_level_wins_and_no_account_means_the_default_one() -> None:
    rows = bindings([row("first"), row("second")])
    spot = replace(TOPIC, account="work")
    assert pick(rows, TOPIC, Settings())[0] == rows[0]
    assert pick(rows, spot, Settings())[0] is None
    assert pick(rows, spot, Settings(accounts={"telegram": "work"}))[1] == "account"


def test_a_binding_that_cannot_be_read_matches_nothing() -> None:
    assert not bindings(
        [
            {},
            {"agentId": "a"},
            {"agentId": "", "match": {"channel": "x"}},
            {"agentId": "a", "match": {}},
            {"agentId": "a", "type": "acp", "match": {"channel": "x"}},
            {"agentId": "a", "match": {"channel": "x", "peer": {"kind": "planet", "id": "1"}}},
            {"agentId": "a", "match": {"channel": "x", "peer": {"kind": "group"}}},
            {"agentId": "a", "match": {"channel": "x", "peer": "1"}},
        ]
    )
    odd = bindings([{"agentId": "A", "match": {"channel": "X", "roles": "all"}, "session": 4}])
    assert odd == (Binding(AgentId("a"), "x"),)


@pytest.mark.req("CH-07b")
@pytest.mark.parametrize(
    ("spot", "scope", "key"),
    [
        (Spot("telegram", "default", "direct", "42"), "main", "agent:main:main"),
        (Spot("telegram", "default", "direct", "42", thread="9"), "main", "agent:main:main"),
        (Spot("telegram", "default", "direct", "42"), "per-peer", "agent:main:direct:42"),
        (Spot("telegram", "default", "direct", "42"), None, "agent:main:telegram:direct:42"),
        (
            Spot("telegram", "two", "direct", "42"),
            "per-account-channel-peer",
            "agent:main:telegram:two:direct:42",
        ),
        (Spot("slack", "default", "direct", "U1", thread="9"), None, "agent:main:slack:direct:U1:thread:9"),
        (Spot("telegram", "default", "direct", "7"), None, "agent:main:direct:bob"),
        (Spot("telegram", "default", "group", "-100"), None, "agent:main:telegram:group:-100"),
        (TOPIC, None, "agent:main:telegram:group:-100:topic:7"),
        (Spot("slack", "default", "channel", "C1"), None, "agent:main:slack:channel:C1"),
        (Spot("slack", "default", "channel", "C1", thread="5"), None, "agent:main:slack:channel:C1:thread:5"),
        (
            Spot("discord", "default", "channel", "T9", parent="C1"),
            None,
            "agent:main:discord:channel:C1:thread:T9",
        ),
        (
            Spot("telegram", "two", "group", "-100"),
            None,
            "agent:main:telegram:group:-100:thread:telegram-account-two",
        ),
        (
            replace(TOPIC, account="two"),
            None,
            "agent:main:telegram:group:-100:topic:7-telegram-account-two",
        ),
    ],
)
def test_the_session_of_a_place(spot: Spot, scope: Any, key: str) -> None:
    assert route((), spot, Settings(dm_scope=scope, links={"bob": ["telegram:7"]})).key == key


def test_a_binding_may_say_how_sessions_are_kept_apart() -> None:
    rows = bindings(
        [
            row("a", peer={"kind": "direct", "id": "42"}) | {"session": {"dmScope": "main"}},
            row("b", peer={"kind": "group", "id": "*"}) | {"session": {"groupScope": "main"}},
            row("c", peer={"kind": "direct", "id": "*"}) | {"session": {"dmScope": "all-in-one"}},
        ]
    )
    found = route(rows, Spot("telegram", "default", "direct", "42"), Settings())
    assert (found.key, found.scope) == ("agent:a:main", "main")
    assert route(rows, TOPIC, Settings()).key == "agent:b:main"
    assert route(rows, Spot("telegram", "default", "direct", "43"), Settings()).key == "agent:c:telegram:direct:43"
