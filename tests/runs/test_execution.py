"""How programs are run, as the owner set it."""

from __future__ import annotations

from typing import Any

import pytest

from garra.config.sections import Config
from garra.core.execrules import Policy
from garra.runs.execution import For, settings

ME = "telegram:bot:7"


def made(tools: Any = None, agent: Any = None) -> Config:
    found: Config = Config.model_validate(
        {"tools": tools or {}, "agents": {"list": [{"id": "main"}, {"id": "work", "tools": agent or {}}]}}
    )
    return found


def policy(tools: Any, agent: Any = None, name: str = "work") -> Policy:
    return settings(made({"exec": tools}, {"exec": agent or {}}), For(name, "operator")).policy


@pytest.mark.req("TOOL-12")
def test_of_the_configuration_and_the_agent_s_the_stricter_holds() -> None:
    assert policy({}) == Policy()
    assert policy({"mode": "full"}) == Policy("full", "off")
    assert policy({"mode": "full"}, {"mode": "ask"}) == Policy("allowlist", "on-miss")
    assert policy({"mode": "full"}, {"mode": "ask"}, "main") == Policy("full", "off")
    assert policy({"mode": "deny"}, {"mode": "full"}) == Policy("deny", "off")
    assert policy({"security": "allowlist"}, {"ask": "always"}) == Policy("allowlist", "always")
    assert policy({"mode": "full", "ask": "always"}) == Policy("full", "always")
    assert policy({"mode": "auto"}) == Policy("allowlist", "on-miss")


def test_what_an_agent_says_itself_comes_first() -> None:
    common = {"host": "gateway", "backgroundMs": 5, "safeBins": ["jot"], "safeBinProfiles": {"jot": {}, "b": {}}}
    own = {"timeoutSec": 7, "safeBins": [], "safeBinProfiles": {"jot": {"maxPositional": 2}}}
    found = settings(made({"exec": common}, {"exec": own}), For("work", "operator"))
    assert (found.host, found.yield_ms, found.timeout_s, found.safe_bins) == ("gateway", 5, 7, ())
    assert {name: profile["maxPositional"] for name, profile in found.safe_profiles.items()} == {"jot": 2, "b": 0}
    others = settings(made({"exec": common}, {"exec": own}), For("main", "operator"))
    assert (others.timeout_s, others.safe_bins) == (1_800, ("jot",))
    assert settings(made(), For("main", "operator")).safe_bins is None


def test_the_time_may_be_said_in_either_word() -> None:
    for said, seconds in (({}, 1_800), ({"timeoutSec": 5}, 5), ({"timeoutSeconds": 0}, 0), ({"timeoutSeconds": 9}, 9)):
        assert settings(made({"exec": said}), For("main", "operator")).timeout_s == seconds


@pytest.mark.req("TOOL-16")
@pytest.mark.parametrize(
    ("elevated", "whom", "free"),
    [
        ({}, For("main", "channel", ME), False),
        ({"enabled": True}, For("main", "channel", ME), False),
        ({"enabled": True}, For("main", "operator"), False),
        ({"allowFrom": {"telegram": ["7"]}}, For("main", "channel", ME), False),
        ({"enabled": True, "allowFrom": {"telegram": ["7"]}}, For("main", "channel", ME), True),
        ({"enabled": True, "allowFrom": {"telegram": [7]}}, For("main", "channel", ME), True),
        ({"enabled": True, "allowFrom": {"telegram": ["id:7"]}}, For("main", "channel", ME), True),
        (
            {"enabled": True, "allowFrom": {"telegram": ["name:7", "username:7", "70"]}},
            For("main", "channel", ME),
            False,
        ),
        ({"enabled": True, "allowFrom": {"telegram": ["*"]}}, For("main", "channel", ME), False),
        ({"enabled": True, "allowFrom": {"discord": ["7"]}}, For("main", "channel", ME), False),
        ({"enabled": True, "allowFrom": {"matrix": ["@me:host"]}}, For("main", "channel", "matrix:a:@me:host"), True),
        ({"enabled": True, "allowFrom": {"telegram": [""]}}, For("main", "channel", "telegram:bot:"), False),
        ({"enabled": True, "allowFrom": {"webchat": ["*"]}}, For("main", "operator"), True),
        ({"enabled": True, "allowFrom": {"operator": ["owner"]}}, For("main", "local"), True),
        ({"enabled": True, "allowFrom": {"telegram": ["7"]}}, For("main", "operator"), False),
        ({"enabled": True, "allowFrom": {"webchat": ["*"]}}, For("main", "job"), False),
        ({"enabled": True, "allowFrom": {"telegram": ["7"]}}, For("main", "subagent", ME), False),
    ],
)
def test_elevated_is_for_those_who_are_named_where_it_is_on(elevated: Any, whom: For, *, free: bool) -> None:
    found = settings(made({"elevated": elevated}), whom).barred
    assert bool(found) is not free


def test_an_agent_can_only_narrow_who_may() -> None:
    common = {"enabled": True, "allowFrom": {"telegram": ["7", "8"]}}
    for own, whom, free in (
        ({"enabled": False, "allowFrom": {"telegram": ["7"]}}, ME, False),
        ({"enabled": True, "allowFrom": {"telegram": ["8"]}}, ME, False),
        ({"enabled": True, "allowFrom": {"telegram": ["7", "9"]}}, ME, True),
        ({"enabled": True, "allowFrom": {"telegram": ["9"]}}, "telegram:bot:9", False),
    ):
        found = settings(made({"elevated": common}, {"elevated": own}), For("work", "channel", whom))
        assert bool(found.barred) is not free
