"""A large set of tools: told by name, found, described and called, each under its own policy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from garra.core.messages import ToolCall, ToolResult
from garra.core.policy import Decision, Layer, Verdict
from garra.core.toolsearch import Settings
from garra.domains.tools.pipeline import Gated, Pending, Pipeline
from garra.io.clock import SystemClock
from garra.sdk.tool import Call, Result, ToolInfo, Update
from tests.builtin.tools.place import context
from tests.domains.tools.test_pipeline import SCOPE

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "the words " * 40}},
    "required": ["text"],
    "additionalProperties": False,
}


class Named:
    def __init__(self, name: str, about: str) -> None:
        self.info = ToolInfo(name, name, about, SCHEMA, source="plugin" if name == "weather" else "openclaw")
        self.said: list[Any] = []

    async def execute(self, call: Call, update: Update) -> Result:
        self.said.append(call.arguments)
        return Result.of(f"{self.info.name}: {call.arguments['text']}", {"n": 1})


def tools() -> list[Named]:
    return [
        Named("read", "Read a file."),
        Named("message", "Send something into a chat."),
        Named("weather", "The weather of a place."),
        Named("gateway", "Settings of the gateway."),
    ]


def house(listed: Sequence[Named], *layers: Layer, **more: Any) -> Pipeline:
    settings = Settings(on=True)
    return Pipeline(lambda: listed, lambda _: layers, SystemClock(), searching=lambda _: settings, **more)


async def called(pipeline: Pipeline, name: str, **arguments: Any) -> ToolResult:
    return await pipeline.call(ToolCall("c1", name, arguments), context(), lambda _: None, SCOPE)


def names(pipeline: Pipeline) -> list[str]:
    return [spec.name for spec in pipeline.specs(SCOPE)]


def test_what_is_used_less_is_told_by_name_only() -> None:
    pipeline = house(tools())
    assert names(pipeline) == ["read", "tool_search", "tool_call"]
    assert "gateway, message, weather" in pipeline.specs(SCOPE)[1].description
    assert set(pipeline.modes(SCOPE)) == {
        "read", "message", "weather", "gateway", "tool_search", "tool_describe", "tool_call",
    }  # fmt: skip
    assert pipeline.specs(SCOPE) is pipeline.specs(SCOPE), "the same bytes each time"


async def test_it_is_found_described_and_called() -> None:
    listed = tools()
    pipeline = house(listed)
    hits = json.loads((await called(pipeline, "tool_search", query="chat")).text)
    assert hits[0]["id"] == "message"
    assert hits[0]["input"] == "{ text: string }"
    whole = json.loads((await called(pipeline, "tool_describe", id="message")).text)
    assert whole["parameters"]["required"] == ["text"]
    result = await called(pipeline, "tool_call", id="message", args={"text": "hello"})
    assert (result.name, result.call_id, result.text) == ("tool_call", "c1", "message: hello")
    assert result.details == {
        "tool": {"id": "message", "name": "message", "source": "openclaw"},
        "result": {"n": 1},
    }
    assert (await called(pipeline, "tool_call", id="message", text="flat")).text == "message: flat"
    assert (await called(pipeline, "message", text="by its name")).text == "message: by its name"


async def test_several_questions_at_once() -> None:
    pipeline = house(tools())
    body = (await called(pipeline, "tool_search", queries=[{"query": "chat", "limit": 1}, {"query": "zzz"}])).details
    assert [len(group["candidates"]) for group in body["results"]] == [1, 0]
    assert (await called(pipeline, "tool_search", query="zzz")).text == "Nothing fits; try other words."
    for wrong in ({}, {"query": 5}, {"query": "x" * 600}, {"queries": [{"query": "a"}] * 17}):
        assert (await called(pipeline, "tool_search", **wrong)).is_error


async def test_a_long_answer_is_cut() -> None:
    many = [Named(f"weather{at}", "The weather of a place, and much more about it. " * 4) for at in range(60)]
    found = await called(house(many), "tool_search", queries=[{"query": "weather", "limit": 20}] * 2)
    assert len(found.text) <= 4_000
    assert found.details["truncated"] is True


async def test_what_is_denied_is_not_found_and_not_called() -> None:
    listed = tools()
    pipeline = house(listed, Layer("owner", None, ("message",)))
    assert "message" not in pipeline.specs(SCOPE)[1].description
    assert "message" not in (await called(pipeline, "tool_search", query="message chat")).text
    for call in (
        await called(pipeline, "tool_call", id="message", args={"text": "x"}),
        await called(pipeline, "tool_describe", id="message"),
        await called(pipeline, "message", text="x"),
        await called(pipeline, "tool_call", id="tool_call", args={"id": "message", "args": {"text": "x"}}),
    ):
        assert call.is_error
        assert "There is no tool" in call.text
    assert listed[1].said == []


async def test_a_person_is_asked_about_the_tool_itself_and_hooks_see_it() -> None:
    asked: list[str] = []

    async def gate(pending: Pending, decision: Decision) -> Gated:
        assert decision.verdict is Verdict.ASK
        asked.append(pending.call.name)
        return Gated(False, "not today")

    async def before(pending: Pending) -> ToolCall:
        asked.append(f"hook {pending.call.name}")
        return pending.call

    pipeline = house(tools(), Layer("owner", None, (), ("message",)), gate=gate, before=(before,))
    refused = await called(pipeline, "tool_call", id="message", args={"text": "x"})
    assert refused.is_error
    assert "not today" in refused.text
    assert asked == ["hook message", "message"]


async def test_its_arguments_are_checked_as_its_own() -> None:
    found = await called(house(tools()), "tool_call", id="message", args={"txt": "x"})
    assert found.is_error
    assert "The arguments of message do not fit" in found.text


@pytest.mark.parametrize("denied", ["tool_call", "tool_search", "*_search"])
def test_an_owner_who_denies_the_way_is_told_all_in_full(denied: str) -> None:
    pipeline = house(tools(), Layer("owner", None, (denied,)))
    assert names(pipeline) == ["read", "message", "weather", "gateway"]


async def test_where_nothing_is_deferred_there_is_no_such_tool() -> None:
    pipeline = Pipeline(tools, lambda _: (), SystemClock())
    assert (await called(pipeline, "tool_call", id="message", args={"text": "x"})).is_error
