"""exec and process, as a model calls them; sessions_list; and what all tools cost in a request."""

from __future__ import annotations

import asyncio
import json
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import garra.builtin.tools
from garra.core.toolsearch import Settings
from garra.domains.tools.finding import offer
from garra.domains.tools.pipeline import Scope
from garra.sdk.tool import Tool
from tests.builtin.tools.place import KEY, Place

MANIFEST = Path(garra.builtin.tools.__file__).with_name("manifest.toml")


async def test_a_command_that_ends(place: Place) -> None:
    result = await place.call("exec", command="echo hi-from-tool")
    assert result.text == "hi-from-tool"
    took = result.details.pop("durationMs")
    assert took >= 0
    assert result.details == {
        "status": "completed",
        "exitCode": 0,
        "exitSignal": None,
        "exitReason": "exit",
        "aggregated": "hi-from-tool",
        "timedOut": False,
        "noOutputTimedOut": False,
        "cwd": str(place.root),
    }
    assert place.updates == ["hi-from-tool\n"]


async def test_how_a_command_can_end_badly(place: Place) -> None:
    failed = await place.call("exec", cmd="echo out; exit 7")
    assert (failed.text, failed.is_error) == ("out\n\n(Command exited with code 7)", False)
    assert await place.said("exec", command="true") == "(no output)"
    assert "(Command ended by signal SIGKILL)" in await place.refused("exec", command="kill -9 $$")
    assert "may not be set" in await place.refused("exec", command="x", env={"PATH": "/evil"})
    assert "it is empty" in await place.refused("exec", command=" ")
    assert "must be one of" in await place.refused("exec", command="x", host="example.org")


async def test_a_tool_out_of_time_is_a_result(place: Place) -> None:
    result = await place.call("exec", command="echo so far; sleep 99", timeout=0.5)
    assert result.is_error
    assert result.text.startswith("so far\n\n(Command timed out after")
    assert (result.details["status"], result.details["exitReason"], result.details["timedOut"]) == (
        "failed",
        "timeout",
        True,
    )


@pytest.mark.req("TOOL-10")
async def test_a_command_behind(place: Place) -> None:
    begun = await place.call("exec", command="echo begun; read -r l; echo got $l; read -r l", background=True)
    assert begun.details["status"] == "running"
    session = begun.details["sessionId"]
    assert f"session {session}" in begun.text
    assert begun.details["pid"] > 0
    while "begun" not in await place.said("process", action="log", sessionId=session):
        await place.call("process", action="poll", sessionId=session, timeout=1_000)
    assert f"{session} running" in await place.said("process", action="list")
    said = await place.said("process", action="write", sessionId=session, data="this\n")
    while "got this" not in said:
        said = await place.said("process", action="poll", sessionId=session, timeout=1_000)
    assert said.endswith("Still running.")
    killed = await place.call("process", action="kill", sessionId=session)
    assert killed.text.endswith("Ended: killed.")
    assert "no command" in await place.refused("process", action="kill", sessionId="other")
    assert "sessionId is needed" in await place.refused("process", action="poll")


async def test_keys_for_a_terminal(place: Place) -> None:
    begun = await place.call("exec", command="read -r a; read -r b; echo $a-$b; sleep 60", pty=True, yieldMs=100)
    session = begun.details["sessionId"]
    await place.said("process", action="send-keys", sessionId=session, keys=["x", "Enter"])
    await place.said("process", action="submit", sessionId=session, data="y")
    while "x-y" not in await place.said("process", action="log", sessionId=session, offset=0):
        pass
    await place.said("process", action="paste", sessionId=session, data="z")
    said = await place.said("process", action="send-keys", sessionId=session, keys=["C-c"])
    while "Still running" in said:
        said = await place.said("process", action="poll", sessionId=session, timeout=1_000)
        if "Still running" in said:  # a shell that is just starting a program does not pass it on
            said = await place.said("process", action="send-keys", sessionId=session, keys=["C-c"])
    assert "Ended: by signal SIGINT." in said or "code 130" in said
    assert "is no key" in await place.refused("process", action="send-keys", sessionId=session, keys=["Entre"])


async def test_what_is_typed_may_be_said_in_the_original_s_words(place: Place) -> None:
    begun = await place.call("exec", command="echo hi; read -r a; read -r b; echo $a-$b", pty=True, yieldMs=100)
    session = begun.details["sessionId"]
    while "hi" not in await place.said("process", action="log", sessionId=session, offset=0):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await place.said("process", action="send-keys", sessionId=session, literal="on", hex=["65"], keys=["Enter"])
    await place.said("process", action="write", sessionId=session, text="two\n")
    while "one-two" not in await place.said("process", action="log", sessionId=session, offset=0):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    for odd in ({"hex": ["zz"]}, {"hex": ["ff"]}, {"literal": "x", "keys": ["Entre"]}):
        assert await place.refused("process", action="send-keys", sessionId=session, **odd)


async def test_sessions_are_asked_of_the_gateway(place: Place) -> None:
    rows = [{"key": "agent:main:main", "label": "Main", "running": True}, {"key": "agent:main:subagent:1"}]
    place.grants.answer = {"count": 2, "sessions": rows, "hasMore": True, "nextOffset": 2}
    said = await place.said("sessions_list", limit=3, search="m")
    assert place.grants.asked == [("sessions.list", {"limit": 3, "search": "m"})]
    assert said == "agent:main:main (at work) Main\nagent:main:subagent:1\n(more: offset 2)"
    place.grants.answer = {"sessions": []}
    assert await place.said("sessions_list") == "No session."


def test_the_manifest_lists_every_tool(tools: tuple[Tool, ...]) -> None:
    listed = tomllib.loads(MANIFEST.read_text())["tool"]
    assert {tool.info.name for tool in tools} <= {part["name"] for part in listed}
    for part in listed:
        module, _, name = part["module"].partition(":")
        assert getattr(import_module(f"garra.builtin.tools.{module}"), name)().info.name == part["name"]


def test_the_tools_of_a_request_are_small(place: Place) -> None:
    every = place.pipeline.specs(Scope(place.context.agent_id, KEY, "operator", api="openai-completions"))
    specs = offer(every, Settings()).told
    body = [
        {"type": "function", "function": {"name": s.name, "description": s.description, "parameters": s.parameters}}
        for s in specs
    ]
    assert [spec.name for spec in specs] == [
        "read", "write", "edit", "ls", "grep", "exec", "process", "tool_search", "tool_call",
    ]  # fmt: skip
    assert len(json.dumps(body, separators=(",", ":"))) <= 4_200


@pytest.mark.req("TOOL-09")
def test_the_parameters_of_exec(place: Place) -> None:
    spec = {spec.name: spec for spec in place.pipeline.specs(Scope(place.context.agent_id, KEY, "operator"))}["exec"]
    types = {name: part.get("enum") or part["type"] for name, part in spec.parameters["properties"].items()}
    assert types == {
        "command": "string",
        "workdir": "string",
        "env": "object",
        "yieldMs": "integer",
        "background": "boolean",
        "timeoutSeconds": "number",
        "pty": "boolean",
        "elevated": "boolean",
        "host": ["auto", "sandbox", "gateway", "node"],
    }
    assert spec.parameters["additionalProperties"] is False
