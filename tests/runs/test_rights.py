"""The eleven steps from the configuration: each takes away, none gives back, and what is absent grants nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garra.config.sections import Config
from garra.core.groups import DENIED, Place
from garra.core.ids import AgentId, SessionKey
from garra.core.policy import GROUPS, LEAF_DENIED, ORDER, SUBAGENT_DENIED, Face, Verdict, decide
from garra.domains.tools.pipeline import Scope
from garra.runs.rights import boxed, layers, nameless, written

NAMES = ("exec", "process", "read", "write", "web_fetch", "sessions_list", "message", "gateway", "ask_user", "browser")
OWNER_DM = Place("telegram", "default", "7", "7", group=False)
GROUP = Place("telegram", "default", "-100", "7")
GUEST = Place("telegram", "default", "8", "8", group=False, named=False)
SCOPE = Scope(
    AgentId("main"), SessionKey("agent:main:main"), "channel", provider="anthropic", api="anthropic-messages",
    place=OWNER_DM, model="claude",
)  # fmt: skip
BOTH: Mapping[str, Any] = {"agents": {"list": [{"id": "main"}]}, "channels": {"telegram": {"groups": {"*": {}}}}}


def config(changes: Mapping[str, Any]) -> Config:
    return Config.model_validate(dict(changes))


def offered(changes: Mapping[str, Any], scope: Scope = SCOPE) -> set[str]:
    found = layers(config(changes), scope)
    return {name for name in NAMES if decide(Face(name), found).verdict is not Verdict.DENY}


def decider(changes: Mapping[str, Any], scope: Scope, name: str = "web_fetch") -> str:
    return decide(Face(name), layers(config(changes), scope)).source


DENY = {"deny": ["web_fetch"]}
LATER: Mapping[str, Any] = {
    "tools": {
        "alsoAllow": ["web_fetch"],
        "allow": ["*"],
        "byProvider": {"anthropic": {"allow": ["*"]}},
        "toolsBySender": {"*": {"allow": ["*"], "alsoAllow": ["web_fetch"]}},
        "sandbox": {"tools": {"allow": ["*"]}},
        "subagents": {"tools": {"allow": ["*"]}},
    },
    "agents": {
        "defaults": {"sandbox": {"mode": "all"}, "subagents": {"maxSpawnDepth": 5}},
        "list": [{"id": "main", "tools": {"allow": ["*"], "byProvider": {"anthropic": {"allow": ["*"]}}}}],
    },
    "channels": {"telegram": {"groups": {"-100": {"tools": {"allow": ["*"], "alsoAllow": ["*"]}}}}},
}
"""Every step allows everything."""
DEEP = replace(SCOPE, place=GROUP, depth=1, inherited=("*",))

CASES: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("provider profile", ("tools", "byProvider", "anthropic", "profile"), "tools.byProvider.anthropic.profile"),
    ("global", ("tools", "deny"), "tools"),
    ("global for the provider", ("tools", "byProvider", "anthropic", "deny"), "tools.byProvider.anthropic"),
    ("agent", ("agents", "list", 0, "tools", "deny"), "agents.main.tools"),
    (
        "agent for the provider",
        ("agents", "list", 0, "tools", "byProvider", "anthropic", "deny"),
        "agents.main.tools.byProvider.anthropic",
    ),
    ("group", ("channels", "telegram", "groups", "-100", "tools", "deny"), "groups.tools"),
    ("sender", ("tools", "toolsBySender", "*", "deny"), "tools.toolsBySender[*]"),
    ("sandbox", ("tools", "sandbox", "tools", "deny"), "tools.sandbox.tools"),
    ("sub-agent", ("tools", "subagents", "tools", "deny"), "tools.subagents.tools"),
)


def put(document: Mapping[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made: dict[str, Any] = deepcopy(dict(document))
    here: Any = made
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return made


@pytest.mark.req("TOOL-05")
def test_where_every_step_allows_the_tool_is_there() -> None:
    assert "web_fetch" in offered(LATER, DEEP)
    assert [each for each in ORDER[:-1] if each != "provider profile"] == list(
        dict.fromkeys(layer.step for layer in layers(config(LATER), DEEP))
    )


@pytest.mark.req("TOOL-05")
@pytest.mark.parametrize(("step", "path", "source"), CASES)
def test_a_step_that_takes_it_away_is_final(step: str, path: tuple[Any, ...], source: str) -> None:
    value: Any = "minimal" if path[-1] == "profile" else ["web_fetch"]
    changed = put(LATER, path, value)
    assert "web_fetch" not in offered(changed, DEEP), "the later steps allow everything"
    assert decider(changed, DEEP) == source
    chosen = next(layer for layer in layers(config(changed), DEEP) if layer.source == source)
    assert chosen.step == step


@pytest.mark.req("TOOL-05")
def test_a_profile_and_what_a_parent_had_are_final_too() -> None:
    small = {"tools": {"profile": "minimal"}, "agents": {"list": [{"id": "main", "tools": {"allow": ["*"]}}]}}
    assert offered(small) == {"gateway"}
    assert offered({}, replace(SCOPE, depth=1, inherited=("read",))) == {"read"}
    assert offered({}, replace(SCOPE, inherited=())) == set()


def test_the_agents_profile_stands_for_that_of_all() -> None:
    base = {"tools": {"profile": "messaging"}, "agents": {"list": [{"id": "main", "tools": {"profile": "coding"}}]}}
    assert "exec" in offered(base)
    only = {"tools": {"profile": "messaging", "alsoAllow": ["exec"]}}
    assert "exec" in offered(only)
    assert "exec" not in offered({"tools": {"profile": "messaging"}})


def test_a_model_is_nearer_than_its_provider() -> None:
    by = {"anthropic": {"deny": ["exec"]}, "anthropic/claude": {"deny": ["read"]}}
    assert {"exec", "read"}.isdisjoint(offered({"tools": {"byProvider": by}}))
    assert "read" in offered({"tools": {"byProvider": by}}, replace(SCOPE, model="other"))


@pytest.mark.req("TOOL-06")
def test_the_owner_in_his_chat_and_a_group_get_different_tools() -> None:
    mine, theirs = offered(BOTH), offered(BOTH, replace(SCOPE, place=GROUP))
    assert {"exec", "write", "read"} <= mine
    assert {"exec", "write", "read", "sessions_list", "gateway"}.isdisjoint(theirs)
    assert "web_fetch" in theirs
    opened = {**BOTH, "channels": {"telegram": {"groups": {"-100": {"tools": {"alsoAllow": ["read"]}}}}}}
    assert {"exec", "write"}.isdisjoint(offered(opened, replace(SCOPE, place=GROUP)))
    assert "read" in offered(opened, replace(SCOPE, place=GROUP))


@pytest.mark.parametrize(
    ("key", "holds"),
    [
        ("channel:telegram:7", True),
        ("id:7", True),
        ("7", True),
        ("*", True),
        ("channel:discord:7", False),
        ("id:70", False),
        ("e164:7", False),
        ("username:7", False),
        ("name:7", False),
    ],
)
def test_senders_are_known_by_their_id(key: str, holds: bool) -> None:
    rules = {"tools": {"toolsBySender": {key: {"deny": ["exec"]}}}}
    assert ("exec" not in offered(rules)) is holds


def test_a_number_is_one_where_the_platforms_ids_are_numbers() -> None:
    rules = {"tools": {"toolsBySender": {"e164:+15551234567": {"deny": ["exec"]}}}}
    for sender, holds in (("+15551234567", True), ("15551234567@s.whatsapp.net", True), ("15551234567", False)):
        place = replace(OWNER_DM, channel="whatsapp", sender=sender)
        assert ("exec" not in offered(rules, replace(SCOPE, place=place))) is holds


def test_the_closest_row_counts_and_the_agents_before_that_of_all() -> None:
    rows = {"*": {"deny": ["*"]}, "id:7": {}}
    assert "exec" in offered({"tools": {"toolsBySender": rows}})
    own = {"id": "main", "tools": {"toolsBySender": {"id:7": {"deny": ["read"]}}}}
    both = {"tools": {"toolsBySender": {"id:7": {"deny": ["exec"]}}}, "agents": {"list": [own]}}
    assert "exec" in offered(both)
    assert "read" not in offered(both)


def test_a_senders_row_gives_nothing_back_in_a_group() -> None:
    rules = {**BOTH, "tools": {"toolsBySender": {"id:7": {"alsoAllow": ["exec"]}}}}
    assert "exec" not in offered(rules, replace(SCOPE, place=GROUP))


def test_the_owner_at_his_own_screen_is_no_sender() -> None:
    rules = {"tools": {"toolsBySender": {"*": {"deny": ["exec"]}}}}
    assert "exec" in offered(rules, replace(SCOPE, place=None, origin="operator"))


@pytest.mark.parametrize("agent", ["", "nobody"])
def test_an_agent_that_does_not_exist_has_no_tools(agent: str) -> None:
    assert offered({}, replace(SCOPE, agent_id=AgentId(agent), place=None, origin="operator")) == set()


def test_a_turn_from_a_chat_that_nobody_knows_is_a_strangers() -> None:
    assert {"exec", "read", "gateway"}.isdisjoint(offered({}, replace(SCOPE, place=None)))
    rules = {"tools": {"toolsBySender": {"*": {"deny": ["web_fetch"]}}}}
    assert "web_fetch" not in offered(rules, replace(SCOPE, place=None))


def test_behind_the_fence_little_is_offered() -> None:
    fenced = {"agents": {"defaults": {"sandbox": {"mode": "all"}}}}
    assert offered(fenced) == {"exec", "process", "read", "write", "sessions_list"}
    more = {**fenced, "tools": {"sandbox": {"tools": {"alsoAllow": ["browser", "web_fetch"]}}}}
    assert offered(more) == {"exec", "process", "read", "write", "sessions_list", "browser", "web_fetch"}
    own = {"id": "main", "tools": {"sandbox": {"tools": {"allow": ["read"]}}}}
    assert offered({**more, "agents": {**fenced["agents"], "list": [own]}}) == {"read"}


def test_which_sessions_are_behind_the_fence() -> None:
    other = replace(SCOPE, session_key=SessionKey("agent:main:telegram:direct:7"))
    part = config({"agents": {"defaults": {"sandbox": {"mode": "non-main"}}}})
    assert [boxed(part, SCOPE), boxed(part, other), boxed(config({}), other)] == [False, True, False]
    own = {"defaults": {"sandbox": {"mode": "all"}}, "list": [{"id": "main", "sandbox": {"mode": "off"}}]}
    assert not boxed(config({"agents": own}), other)


def test_sub_agents_speak_to_nobody() -> None:
    child = replace(SCOPE, depth=1, inherited=("*",), place=None, origin="subagent")
    found = layers(config({"agents": {"defaults": {"subagents": {"maxSpawnDepth": 2}}}}), child)
    gone = {name for name in (*SUBAGENT_DENIED, *LEAF_DENIED) if decide(Face(name), found).verdict is Verdict.DENY}
    assert gone == set(SUBAGENT_DENIED)
    leaf = layers(config({}), child)
    assert all(decide(Face(name), leaf).verdict is Verdict.DENY for name in (*SUBAGENT_DENIED, *LEAF_DENIED))
    deep = {
        "defaults": {"subagents": {"maxSpawnDepth": 1}},
        "list": [{"id": "main", "subagents": {"maxSpawnDepth": 3}}],
    }
    own = layers(config({"agents": deep}), child)
    assert decide(Face("sessions_spawn"), own).verdict is Verdict.ALLOW


def test_over_http_what_runs_and_writes_is_out_of_reach() -> None:
    outside = replace(SCOPE, place=None, origin="operator", surface="http")
    assert {"exec", "read", "write", "gateway"}.isdisjoint(offered({}, outside))
    opened = {"gateway": {"tools": {"allow": ["exec"], "deny": ["message"]}}}
    assert "exec" in offered(opened, outside)
    assert "message" not in offered(opened, outside)


def test_every_list_of_the_configuration_is_looked_through() -> None:
    own = {"id": "a", "tools": {"deny": ["x"]}}
    rules = {
        "tools": {"allow": ["y"], "toolsBySender": {"id:7": {"deny": ["z"]}, "name:Bob": {}}},
        "agents": {"list": [own]},
    }
    found = {place: items for place, items in written(config(rules)) if items}
    assert found == {"tools.allow": ("y",), "tools.toolsBySender[id:7].deny": ("z",), "agents.a.tools.deny": ("x",)}
    assert list(nameless(config(rules))) == ["tools.toolsBySender[name:Bob]"]


# ---- what is removed from a document never gives more

_items = st.lists(st.sampled_from([*NAMES, "group:runtime", "group:fs", "group:sessions", "*"]), max_size=3)
_policy = st.fixed_dictionaries({}, optional={"alsoAllow": _items, "allow": _items})
_rows = st.dictionaries(st.sampled_from(["id:7", "channel:telegram:7", "*", "7"]), _policy, max_size=2)
_group = st.fixed_dictionaries({}, optional={"tools": _policy, "toolsBySender": _rows})
_documents = st.fixed_dictionaries(
    {
        "channels": st.fixed_dictionaries(
            {
                "telegram": st.fixed_dictionaries(
                    {"groups": st.dictionaries(st.sampled_from(["-100", "*"]), _group, max_size=2)}
                )
            }
        )
    }
)


def _paths(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield (*at, key)
            yield from _paths(value, (*at, key))


def _without(document: Mapping[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    made: dict[str, Any] = deepcopy(dict(document))
    here: Any = made
    for key in path[:-1]:
        here = here[key]
    del here[path[-1]]
    return made


def _granted(document: Any) -> set[str]:
    """Whatever some list of allowed tools names in words."""
    items = [item for path in _paths(document) if path[-1] in ("allow", "alsoAllow") for item in _at(document, path)]
    return set(NAMES) if "*" in items else {name for item in items for name in GROUPS.get(item, (item,))}


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


CLOSED = {name for group in DENIED for name in GROUPS[group]}


@settings(max_examples=150, deadline=None)
@given(_documents, st.data())
def test_removing_keys_never_opens_what_is_closed_to_groups(document: dict[str, Any], data: st.DataObject) -> None:
    """What no group has by itself is there only while some key that is left names it."""
    paths = list(_paths(document))
    for _ in range(data.draw(st.integers(0, 3))):
        path = data.draw(st.sampled_from(paths)) if paths else ()
        if path:
            document = _without(document, path)
            paths = list(_paths(document))
    for place in (GROUP, GUEST):
        got = offered(document, replace(SCOPE, place=place)) & CLOSED
        assert got <= _granted(document)


_narrow = st.fixed_dictionaries(
    {}, optional={"alsoAllow": _items, "deny": _items, "profile": st.sampled_from(["coding", "?"])}
)


@settings(max_examples=100, deadline=None)
@given(_narrow, _items, st.sampled_from(["alsoAllow"]))
def test_removing_what_grants_never_grows_rights(tools: dict[str, Any], sandbox: list[str], key: str) -> None:
    whole = {
        "tools": {**tools, "sandbox": {"tools": {"alsoAllow": sandbox}}},
        "agents": {"defaults": {"sandbox": {"mode": "all"}}},
    }
    less = deepcopy(whole)
    less["tools"].pop(key, None)
    assert offered(less) <= offered(whole)
    assert offered(put(less, ("tools", "sandbox"), {})) <= offered(whole)
