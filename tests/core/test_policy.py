"""Layers narrow, denials win, what is unknown grants nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.policy import (
    GROUPS,
    ORDER,
    PROFILES,
    Decision,
    Face,
    Layer,
    Verdict,
    decide,
    matches,
    over_http,
    own_groups,
    profile,
    strange,
    trace,
    unknown,
)

EXEC, READ, PATCH = Face("exec"), Face("read"), Face("apply_patch")


def test_no_layer_allows() -> None:
    assert decide(EXEC, []) == Decision(Verdict.ALLOW, "default")


def test_a_denial_beats_an_allowance_and_names_its_layer() -> None:
    layers = [Layer("global", allow=("exec",)), Layer("sender", deny=("exec",)), Layer("later", allow=("exec",))]
    assert decide(EXEC, layers) == Decision(Verdict.DENY, "sender")


def test_an_empty_list_allows_nothing() -> None:
    assert decide(READ, [Layer("global", allow=())]).verdict is Verdict.DENY


def test_asking_stays_through_later_layers() -> None:
    layers = [Layer("global", ask=("group:runtime",)), Layer("agent")]
    assert decide(EXEC, layers) == Decision(Verdict.ASK, "global")


@pytest.mark.parametrize("pattern", ["exec", "EXEC", " bash ", "group:runtime", "ex*", "*"])
def test_ways_to_name_a_tool(pattern: str) -> None:
    assert matches(EXEC, [pattern])


@pytest.mark.parametrize("pattern", ["execute", "group:fs", "group:nonsense", "e", "[e]xec", "r*"])
def test_what_does_not_name_it(pattern: str) -> None:
    assert not matches(EXEC, [pattern])


def test_a_tool_says_itself_which_groups_it_is_in() -> None:
    weather = Face("weather", ("group:plugins", "weather-plugin"))
    assert matches(weather, ["group:plugins"])
    assert matches(weather, ["weather-plugin"])


def test_who_may_not_write_may_not_patch() -> None:
    assert decide(PATCH, [Layer("g", deny=("write",))]).verdict is Verdict.DENY
    assert decide(PATCH, [Layer("g", allow=("write",))]).verdict is Verdict.ALLOW


def test_profiles() -> None:
    assert profile(None) == Layer("profile", step="profile")
    assert profile("full").allow is None
    assert profile("nonsense").allow == PROFILES["minimal"]
    assert decide(EXEC, [profile("messaging")]).verdict is Verdict.DENY
    assert decide(EXEC, [profile("messaging", ["exec"])]).verdict is Verdict.ALLOW
    coding = profile("coding")
    for name in ("read", "ls", "grep", "exec", "process", "sessions_list"):
        assert decide(Face(name), [coding]).verdict is Verdict.ALLOW


def test_groups_that_do_not_exist_are_found() -> None:
    assert unknown(["group:fs", "group:plugins", "exec", "group:typo"]) == ("group:typo",)


@pytest.mark.parametrize("name", ["exec", "process", "read", "write", "apply_patch", "cron", "bash"])
def test_what_http_does_not_reach(name: str) -> None:
    assert not over_http(name)


def test_http_opened_and_closed_by_the_owner() -> None:
    assert over_http("sessions_list")
    assert not over_http("sessions_list", deny=["group:sessions"])
    assert over_http("exec", allow=["exec"])
    assert not over_http("exec", allow=["exec"], deny=["exec"])


_names = st.sampled_from(["exec", "read", "write", "apply_patch", "*", "group:fs", "group:runtime", "nonsense"])
_lists = st.lists(_names, max_size=3).map(tuple)
_layers = st.lists(st.builds(Layer, st.just("l"), st.none() | _lists, _lists, _lists), max_size=4)
_ORDER = {Verdict.DENY: 0, Verdict.ASK: 1, Verdict.ALLOW: 2}


@given(_layers, st.builds(Layer, st.just("more"), st.none() | _lists, _lists, _lists))
def test_one_more_layer_never_widens(layers: list[Layer], more: Layer) -> None:
    for name in ("exec", "read", "apply_patch"):
        before, after = decide(Face(name), layers), decide(Face(name), [*layers, more])
        assert _ORDER[after.verdict] <= _ORDER[before.verdict]


def test_every_group_of_the_profiles_exists() -> None:
    named = [item for allowed in PROFILES.values() for item in allowed or () if item.startswith("group:")]
    assert set(named) <= GROUPS.keys()


def test_what_each_layer_says_by_itself() -> None:
    said = [
        Layer("nothing"),
        Layer("lets", ("group:runtime",)),
        Layer("asks", None, (), ("ex*",)),
        Layer("denies", None, ("exec",)),
        Layer("leaves out", ("read",)),
    ]
    heard = trace(EXEC, said)
    assert [(each.word, each.item, each.refuses) for each in heard] == [
        ("says nothing", "", False),
        ("allows", "group:runtime", False),
        ("asks", "ex*", False),
        ("denies", "exec", True),
        ("leaves out", "", True),
    ]


@given(_layers)
def test_the_first_that_refuses_is_the_one_that_decides(layers: list[Layer]) -> None:
    refusing = [each for each in trace(EXEC, layers) if each.refuses]
    assert bool(refusing) is (decide(EXEC, layers).verdict is Verdict.DENY)


def test_items_that_mean_nothing_are_found() -> None:
    items = ("exec", "bash", "group:fs", "group:openclaw", "group:typo", "weather", "web_*", "nonsense_*", "bundle-mcp")
    assert strange(items, [Face("weather")]) == ("group:typo", "nonsense_*")
    assert strange(("exce", "browser"), ()) == ("exce",)


def test_sets_a_tool_is_in_by_where_it_comes_from() -> None:
    assert own_groups("weather", "plugin") == ("group:plugins",)
    assert own_groups("message", "channel") == ("group:openclaw",)
    assert own_groups("exec", "shell") == ()


def test_the_steps_have_their_order() -> None:
    assert ORDER.index("profile") == 0
    assert ORDER[-2:] == ("inherited", "surface")
    assert len(ORDER[:-1]) == 11
