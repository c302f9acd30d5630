"""An agent may propose how it answers, never who may do what."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core.tunable import refused


@pytest.mark.parametrize(
    "change",
    [
        {"agents": {"defaults": {"thinkingDefault": "low", "model": {"primary": "a/b"}}}},
        {"agents": {"defaults": {"model": "a/b"}, "entries": {"work": {"identity": {"emoji": "🦊"}}}}},
        {"channels": {"telegram": {"enabled": False, "accounts": {"two": {"textChunkLimit": 900}}}}},
        {"messages": {"queue": {"mode": "collect"}}},
        {"logging": {"level": None}},
    ],
)
def test_what_may_be_proposed(change: Any) -> None:
    assert refused(change) == ()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({}, ""),
        ({"tools": {"deny": []}}, "tools.deny"),
        ({"tools": None}, "tools"),
        ({"agents": {"list": [{"id": "main", "tools": {}}]}}, "agents.list"),
        ({"agents": {"defaults": {"sandbox": {"mode": "off"}}}}, "agents.defaults.sandbox.mode"),
        ({"agents": {"defaults": {"heartbeat": {"prompt": "x"}}}}, "agents.defaults.heartbeat.prompt"),
        ({"agents": {"defaults": {}}}, "agents.defaults"),
        ({"agents": {"entries": {"work": None}}}, "agents.entries.work"),
        ({"agents": {"entries": {"work": {"tools": {"profile": "full"}}}}}, "agents.entries.work.tools.profile"),
        ({"channels": {"telegram": {"allowFrom": ["*"]}}}, "channels.telegram.allowFrom"),
        ({"channels": {"telegram": {"dmPolicy": "open"}}}, "channels.telegram.dmPolicy"),
        ({"channels": {"telegram": {"groups": {"*": {}}}}}, "channels.telegram.groups.*"),
        ({"channels": {"telegram": {"botToken": "x"}}}, "channels.telegram.botToken"),
        ({"channels": {"telegram": {"proxy": "http://evil"}}}, "channels.telegram.proxy"),
        ({"channels": {"telegram": None}}, "channels.telegram"),
        ({"commands": {"ownerAllowFrom": ["telegram:9"]}}, "commands.ownerAllowFrom"),
        ({"gateway": {"auth": {"mode": "none"}}}, "gateway.auth.mode"),
        ({"models": {"providers": {"x": {"baseUrl": "http://evil"}}}}, "models.providers.x.baseUrl"),
        ({"plugins": {"enabled": True}}, "plugins.enabled"),
        ({"env": {"PATH": "/tmp"}}, "env.PATH"),
        ({"session": {"dmScope": "main"}}, "session.dmScope"),
        ({"channels.telegram": {"enabled": True}}, "channels.telegram.enabled"),
        ({"channels": {"": {"enabled": True}}}, "channels..enabled"),
        ({"messages": {"queue": {"a": {"b": 1}}}}, "messages.queue.a.b"),
    ],
)
def test_what_may_not(change: Any, where: str) -> None:
    assert refused(change) == (where,)
