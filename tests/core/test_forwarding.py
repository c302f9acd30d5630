"""Where questions are carried, as the owner wrote it: what cannot be read carries nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.forwarding import (
    Filter,
    Forward,
    Native,
    Target,
    faults,
    forward,
    native,
    native_faults,
    person,
    room,
)

SLACK, PHONE = {"channel": "Slack", "to": "U1"}, {"channel": "telegram", "to": -100, "accountId": "ops", "threadId": 77}


def test_nothing_is_forwarded_unless_it_says_so() -> None:
    given: tuple[Any, ...] = (None, {}, [], "on", {"enabled": False}, {"enabled": "true"}, {"targets": [SLACK]})
    for raw in given:
        assert forward(raw) == Forward()


def test_modes() -> None:
    both = {"enabled": True, "targets": [SLACK, PHONE, SLACK]}
    named = (Target("slack", "U1"), Target("telegram", "-100", "ops", "77"))
    assert forward(both) == Forward(session=True)
    assert forward({**both, "mode": "session"}) == Forward(session=True)
    assert forward({**both, "mode": "targets"}) == Forward(targets=named)
    assert forward({**both, "mode": "both"}) == Forward(session=True, targets=named)
    assert forward({"enabled": True, "mode": "targets"}) == Forward()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("on", "it should be an object"),
        ({"enabled": 1}, "enabled"),
        ({"mode": "everywhere"}, "'everywhere' is none of"),
        ({"mode": ["both"]}, "none of"),
        ({"targets": SLACK}, "a list of at most"),
        ({"targets": [SLACK] * 21}, "a list of at most"),
        ({"targets": ["slack:U1"]}, "targets[0]: it needs channel and to"),
        ({"targets": [SLACK, {"channel": "slack"}]}, "targets[1]: it needs"),
        ({"targets": [{"channel": "slack", "to": True}]}, "targets[0]: it needs"),
        ({"targets": [{**SLACK, "threadId": ""}]}, "accountId and threadId"),
        ({"agentFilter": "main"}, "agentFilter: a list of texts"),
        ({"sessionFilter": [1]}, "sessionFilter: a list of texts"),
    ],
)
def test_a_fault_is_named_and_forwards_nothing(raw: Any, words: str) -> None:
    assert words in "\n".join(faults(raw))
    if isinstance(raw, dict):
        assert forward({"enabled": True, "targets": [SLACK], **raw}) == Forward()


@pytest.mark.parametrize(
    ("part", "key", "taken"),
    [
        ("discord", "agent:main:discord:channel:1", True),
        ("slack", "agent:main:discord:channel:1", False),
        (r"discord:channel:\d+$", "agent:main:discord:channel:1", True),
        ("^discord", "agent:main:discord:channel:1", False),
        ("", "agent:main:main", False),
        ("[", "agent:main:main", False),
        (r"(a+)+$", "agent:main:" + "a" * 400 + "!", False),
        (r"(a|a)*$", "agent:main:aaa", False),
        (r"a*a*a*b", "agent:main:aab", False),
        (r"(a)\1", "agent:main:aa", False),
        ("x" * 201, "agent:main:main", False),
        ("a{99999999999}", "agent:main:main", False),
    ],
)
def test_sessions_are_chosen_by_a_part_or_a_pattern_of_their_key(part: str, key: str, *, taken: bool) -> None:
    assert Filter(sessions=(part,)).takes("main", key) is taken


def test_a_list_that_names_nobody_takes_nobody() -> None:
    assert Filter().takes("main", "k")
    assert Filter(agents=("main",)).takes("main", "k")
    assert not Filter(agents=("main",)).takes("other", "k")
    assert not Filter(agents=()).takes("main", "k")
    assert not Filter(sessions=()).takes("main", "k")
    assert not forward({"enabled": True, "agentFilter": []}).filter.takes("main", "k")


def test_an_account_asks_unless_it_says_no() -> None:
    assert native(None) == native({}) == Native()
    assert native({"enabled": "auto", "target": "dm"}) == Native(where="dm")
    assert native({"enabled": True, "agentFilter": ["a"], "sessionFilter": ["s"], "target": "both"}) == Native(
        where="both", filter=Filter(("a",), ("s",))
    )
    for raw in ({"enabled": False}, {"enabled": "no"}, {"target": "all"}, {"target": 1}, {"agentFilter": "a"}, "on"):
        assert not native(raw).enabled
    assert "dm, channel, both" in next(native_faults({"target": []}))


def test_a_target_may_say_what_it_is() -> None:
    assert [person("user:U1"), person("dm: 5"), person("@ann:home"), person("U1")] == ["U1", "5", "", ""]
    assert [room("channel:C1"), room("group:-1"), room("-100"), room("room:")] == ["C1", "-1", "", ""]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
KEYS = ("enabled", "mode", "targets", "agentFilter", "sessionFilter", "target")


@given(st.dictionaries(st.sampled_from(KEYS), anything))
def test_no_document_breaks_it_or_opens_what_it_does_not_name(raw: dict[str, Any]) -> None:
    found = forward(raw)
    assert raw.get("enabled") is True or found == Forward()
    named = raw.get("targets")
    assert len(found.targets) <= (len(named) if isinstance(named, list) else 0)
    native(raw).filter.takes("main", "agent:main:main")
