"""Each step's word on a tool, and which one decided, as its owner is told it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from garra.config.sections import Config
from garra.core.access import NOBODY, People
from garra.core.ids import AgentId, SessionId, SessionKey
from garra.core.policy import ORDER
from garra.core.toolsearch import Settings
from garra.domains.sessions.session import Session
from garra.domains.tools.pipeline import Pipeline, Scope
from garra.domains.web.settings import shipped, switches
from garra.io.clock import SystemClock
from garra.runs.explain import Asked, explained, listed, scope_of
from garra.runs.rights import layers
from garra.sdk.tool import Call, Result, ToolInfo, Update

MAIN = SessionKey("agent:main:main")
GROUP = SessionKey("agent:main:telegram:group:-100:topic:4")
DIRECT = SessionKey("agent:main:telegram:direct:7")
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}


class Named:
    def __init__(self, name: str, source: Any = "core") -> None:
        self.info = ToolInfo(name, name, f"Does {name}.", SCHEMA, source=source)

    async def execute(self, call: Call, update: Update) -> Result:
        return Result.of("done")


TOOLS = [Named("exec", "shell"), Named("read"), Named("message", "channel"), Named("weather", "plugin")]


def config(changes: Mapping[str, Any] | None = None) -> Config:
    return Config.model_validate(dict(changes or {}))


def pipeline(of: Config, searching: Settings | None = None) -> Pipeline:
    settings = searching or Settings(on=False)
    return Pipeline(lambda: TOOLS, lambda scope: layers(of, scope), SystemClock(), searching=lambda _: settings)


def why(name: str, key: SessionKey = MAIN, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    of = config(changes)
    return explained(name, pipeline(of), of, scope_of(Asked(key, provider="openai", model="gpt"), None, of))


def test_a_tool_that_nobody_refuses() -> None:
    found = why("bash")
    assert (found["tool"], found["verdict"], found["offered"], found["decidedBy"]) == ("exec", "allow", "full", None)
    assert found["words"] == "exec is offered: no step refuses it (told in full)."
    assert [row["step"] for row in found["layers"]] == list(ORDER[:-1])
    assert found["groups"] == ["group:runtime"]


@pytest.mark.parametrize(
    ("changes", "step", "words"),
    [
        ({"tools": {"profile": "messaging"}}, "profile", "(tools.profile) does not list it"),
        ({"tools": {"deny": ["group:runtime"]}}, "global", "(tools) names group:runtime"),
        ({"agents": {"list": [{"id": "main", "tools": {"deny": ["exec"]}}]}}, "agent", "names exec"),
        ({"tools": {"byProvider": {"openai/gpt": {"deny": ["exec"]}}}}, "global for the provider", "openai/gpt"),
    ],
)
def test_the_step_that_decided_is_named_with_its_place(changes: Any, step: str, words: str) -> None:
    found = why("exec", changes=changes)
    assert found["verdict"] == "deny"
    assert found["decidedBy"]["step"] == step
    assert words in found["words"]


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("browser", {}, "browser.enabled is false. To switch it on: garra config set browser.enabled true"),
        (
            "web_search",
            {},
            "it has nobody to ask. Choose one: garra config set tools.web.search.provider NAME (brave, tavily).",
        ),
        ("web_search", {"provider": "Brave"}, "tools.web.search.provider is Brave, which has no key or address here"),
        ("web_search", {"provider": "foo"}, "'foo', and no searcher is called that. Those there are: brave, tavily."),
        ("web_search", {"enabled": False}, "tools.web.search.enabled is false. To switch it on: garra config set"),
    ],
)
def test_what_is_switched_off_says_how_it_is_switched_on(name: str, changes: Any, words: str) -> None:
    of = config({"tools": {"web": {"search": changes}}})
    searchers = [replace(each, keyless=False) for each in shipped() if each.id in ("brave", "tavily")]
    tools = [Named(name)]
    piped = Pipeline(lambda: tools, lambda scope: [*layers(of, scope), *switches(of, {}, searchers)], SystemClock())
    found = explained(name, piped, of, scope_of(Asked(MAIN), None, of))
    assert found["words"].startswith(f"{name} is not offered: ")
    assert words in found["words"]


def test_in_a_group_the_group_decides() -> None:
    found = why("exec", GROUP)
    assert found["decidedBy"] == {
        "step": "group", "says": "denies", "source": "what no group or guest has", "item": "group:runtime",
    }  # fmt: skip
    assert found["place"]["chat"] == "-100"
    assert "alsoAllow" in found["words"]


def test_what_is_not_there_is_said_to_be_missing() -> None:
    assert why("nonsense")["words"] == "There is no tool nonsense here."
    assert "OpenClaw has one" in why("canvas")["words"]
    assert why("canvas")["verdict"] == "deny"


def test_whose_turn_it_is_comes_from_the_session_and_the_lists() -> None:
    of = config({"channels": {"telegram": {"allowFrom": ["7"]}}})
    assert scope_of(Asked(MAIN), None, of) == Scope(AgentId("main"), MAIN, "operator")
    direct = scope_of(Asked(DIRECT), None, of).place
    assert direct is not None
    assert (direct.sender, direct.named, direct.group, direct.account) == ("7", True, False, "default")
    stranger = scope_of(Asked(DIRECT, sender="8"), None, of).place
    assert stranger is not None
    assert stranger.guest
    met = scope_of(Asked(DIRECT, sender="8"), None, of, lambda channel, account: People(frozenset(["8"]))).place
    assert met is not None
    assert not met.guest
    group = scope_of(Asked(GROUP), None, of).place
    assert group is not None
    assert (group.thread, group.sender, group.group) == ("4", "", True)


def test_a_session_knows_its_chat() -> None:
    extra = {"deliveryContext": {"channel": "irc", "accountId": "home", "to": "#here"}, "spawnDepth": 2}
    session = Session(MAIN, SessionId("s"), AgentId("main"), 0, 0, 0, extra=extra)
    place = scope_of(Asked(MAIN, sender="ann"), session, config()).place
    assert place is not None
    assert (place.channel, place.account, place.chat, place.sender) == ("irc", "home", "#here", "ann")
    child = SessionKey("agent:main:subagent:1")
    assert scope_of(Asked(child), None, config()).depth == 1
    assert scope_of(Asked(child), session, config(), lambda *_: NOBODY).depth == 2


def test_all_tools_with_what_became_of_each() -> None:
    of = config({"tools": {"deny": ["read", "raed"], "toolsBySender": {"name:Bob": {}}}})
    found = listed(pipeline(of), of, scope_of(Asked(MAIN), None, of))
    rows = {row["name"]: row for row in found["tools"]}
    assert (rows["read"]["verdict"], rows["read"]["offered"], rows["read"]["decidedBy"]) == ("deny", "no", "tools")
    assert rows["weather"]["source"] == "plugin"
    assert found["warnings"] == [
        "tools.deny: raed names no tool and no group of tools",
        "tools.toolsBySender[name:Bob] holds for nobody: a name is no reason for a right; write id:…",
    ]


def test_what_is_told_by_name_is_said_so() -> None:
    of = config()
    held = pipeline(of, Settings(on=True))
    small = listed(held, of, scope_of(Asked(MAIN), None, of))
    assert {row["offered"] for row in small["tools"]} == {"full"}, "too few to be worth it"
