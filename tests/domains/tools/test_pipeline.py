"""The one way to a tool: what is refused, mended, hooked, asked and bounded on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from garra.core.errors import NotFound, ToolFailed
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.messages import Image, Text, ToolCall, ToolResult
from garra.core.policy import Decision, Layer, Verdict
from garra.domains.tools.pipeline import MAX_IMAGES, MAX_TEXT, Block, Gated, Pending, Pipeline, Scope, bounded
from garra.io.clock import SystemClock
from garra.sdk.stream import UNPARSED
from garra.sdk.tool import Call, Result, Tool, ToolContext, ToolInfo, Update
from tests.builtin.tools.place import context

SCOPE = Scope(AgentId("main"), SessionKey("agent:main:main"), "operator", api="openai-completions")
COUNT = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1}},
    "required": ["count"],
    "additionalProperties": False,
}


COUNTER = ToolInfo("counter", "Count", "Counts.", COUNT)


@dataclass
class Counter:
    """A tool that counts, or does what it is told to."""

    info: ToolInfo = COUNTER
    error: BaseException | None = None
    calls: list[Mapping[str, Any]] = field(default_factory=list)

    async def execute(self, call: Call, update: Update) -> Result:
        self.calls.append(call.arguments)
        update("counting")
        if self.error:
            raise self.error
        return Result.of("x" * call.arguments["count"], {"count": call.arguments["count"]})


class Mending(Counter):
    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"count": arguments.get("n", arguments.get("count"))}


def house(*tools: Tool, layers: Sequence[Layer] = (), **more: Any) -> Pipeline:
    return Pipeline(lambda: tools, lambda _: layers, SystemClock(), **more)


async def called(
    pipeline: Pipeline, name: str = "counter", updates: list[str] | None = None, **arguments: Any
) -> ToolResult:
    seen: list[str] = [] if updates is None else updates
    return await pipeline.call(ToolCall("c1", name, arguments), context(), seen.append)


@pytest.mark.req("TOOL-01")
async def test_a_call_and_its_updates() -> None:
    updates: list[str] = []
    result = await called(house(Counter()), updates=updates, count=3)
    assert (result.text, result.details, result.is_error) == ("xxx", {"count": 3}, False)
    assert (result.call_id, result.name, updates) == ("c1", "counter", ["counting"])


@pytest.mark.req("TOOL-01")
async def test_a_tool_that_raises_gives_an_error_result() -> None:
    refused = await called(house(Counter(error=ToolFailed("no such thing", details={"path": "x"}))), count=1)
    assert (refused.text, refused.is_error) == ("no such thing", True)
    assert refused.details == {"status": "failed", "error": "no such thing", "errorKind": "tool-failed", "path": "x"}
    broken = await called(house(Counter(error=RuntimeError("secret inside"))), count=1)
    assert broken.is_error
    assert "secret" not in broken.text
    assert broken.details["errorKind"] == "fault"
    denied = await called(house(Counter(error=NotFound("no session"))), count=1)
    assert (denied.text, denied.details["errorKind"]) == ("no session", "refused")


async def test_cancelling_is_the_only_thing_that_is_raised() -> None:
    with pytest.raises(asyncio.CancelledError):
        await called(house(Counter(error=asyncio.CancelledError())), count=1)


@pytest.mark.req("TOOL-02")
async def test_arguments_that_do_not_fit_are_told_and_the_next_call_works() -> None:
    tool = Counter()
    pipeline = house(tool)
    wrong = await called(pipeline, count="many", more=1)
    assert wrong.is_error
    assert wrong.details["errorKind"] == "argument-validation"
    assert 'count: must be integer, got string "many"' in wrong.text
    assert "more: there is no such argument" in wrong.text
    assert not tool.calls
    assert (await called(pipeline, count="2")).text == "xx"
    assert tool.calls == [{"count": 2}]


async def test_arguments_that_are_no_object_are_told_even_to_a_tool_that_takes_anything() -> None:
    anything = Counter(info=replace(COUNTER, parameters={"type": "object"}))
    unread: dict[str, Any] = {UNPARSED: '{"count": 1'}
    result = await called(house(anything), **unread)
    assert result.is_error
    assert result.text == "The arguments of counter are no JSON object. Send them again as one."
    assert anything.calls == []


async def test_a_tool_mends_its_own_slips_first() -> None:
    assert (await called(house(Mending()), n=2)).text == "xx"


async def test_a_tool_that_is_not_there_or_denied_is_not_run() -> None:
    tool = Counter()
    for pipeline, name in ((house(tool), "nothing"), (house(tool, layers=[Layer("g", deny=("counter",))]), "counter")):
        result = await called(pipeline, name, count=1)
        assert result.text.startswith(f"There is no tool {name}.")
        assert result.is_error
    assert not tool.calls


def test_what_a_model_is_told() -> None:
    other = Counter(ToolInfo("other", "O", "Other.", {"anyOf": [COUNT]}, mode="sequential"))
    double = Counter(ToolInfo("counter", "C", "A second one.", COUNT))
    pipeline = house(Counter(), other, double)
    specs = pipeline.specs(SCOPE)
    assert [(spec.name, spec.description) for spec in specs] == [("counter", "Counts."), ("other", "Other.")]
    assert specs[1].parameters["properties"] == COUNT["properties"]
    assert pipeline.specs(replace(SCOPE, api="anthropic-messages"))[1].parameters == {"anyOf": [COUNT]}
    assert "minimum" not in pipeline.specs(replace(SCOPE, provider="google"))[0].parameters["properties"]["count"]
    assert pipeline.specs(SCOPE)[0] is specs[0]
    assert pipeline.modes(SCOPE) == {"counter": "parallel", "other": "sequential"}
    denying = house(Counter(), other, layers=[Layer("agent", deny=("other",))])
    assert [spec.name for spec in denying.specs(SCOPE)] == ["counter"]
    assert denying.modes(SCOPE) == {"counter": "parallel"}
    info = pipeline.info("other")
    assert info is not None
    assert info.mode == "sequential"
    assert pipeline.info("nothing") is None


@pytest.mark.req("TOOL-04")
def test_the_source_of_each_tool_is_shown_and_plugins_are_a_group() -> None:
    plugin = Counter(ToolInfo("weather", "W", "W.", COUNT, source="plugin"))
    rows = house(Counter(), plugin, layers=[Layer("agent", deny=("group:plugins",))]).rows(SCOPE)
    assert [(row.info.name, row.info.source, row.decision) for row in rows] == [
        ("counter", "core", Decision(Verdict.ALLOW, "default")),
        ("weather", "plugin", Decision(Verdict.DENY, "agent")),
    ]


async def test_hooks_before_change_and_block() -> None:
    async def double(pending: Pending) -> ToolCall:
        return replace(pending.call, arguments={"count": pending.call.arguments["count"] * 2})

    async def none(_: Pending) -> Block:
        return Block("not on a Sunday")

    async def broken(_: Pending) -> ToolCall:
        raise RuntimeError

    async def wrong(pending: Pending) -> ToolCall:
        return replace(pending.call, arguments={})

    tool = Counter()
    assert (await called(house(tool, before=[double, double]), count=1)).text == "xxxx"
    blocked = await called(house(tool, before=[none]), count=1)
    assert (blocked.text, blocked.details["kind"]) == ("Not run: not on a Sunday", "blocked")
    assert (await called(house(tool, before=[broken]), count=1)).is_error
    assert "is required" in (await called(house(tool, before=[wrong]), count=1)).text
    assert len(tool.calls) == 1


async def test_hooks_after_see_the_result_and_how_long_it_took() -> None:
    async def broken(_: Pending, __: ToolResult, ___: int) -> ToolResult:
        raise RuntimeError

    async def mark(_: Pending, result: ToolResult, took_ms: int) -> ToolResult:
        return replace(result, meta={"took": took_ms >= 0})

    result = await called(house(Counter(), after=[broken, mark]), count=1)
    assert (result.text, result.meta) == ("x", {"took": True})


async def test_where_the_policy_asks_a_person_decides() -> None:
    asking = [Layer("global", ask=("counter",))]
    asked: list[Decision] = []

    def gate(gated: Gated) -> Any:
        async def answer(_: Pending, decision: Decision) -> Gated:
            asked.append(decision)
            return gated

        return answer

    tool = Counter()
    assert "nobody can be asked" in (await called(house(tool, layers=asking), count=1)).text
    assert "not approved" in (await called(house(tool, layers=asking, gate=gate(Gated(False))), count=1)).text
    assert "no thanks" in (await called(house(tool, layers=asking, gate=gate(Gated(False, "no thanks"))), count=1)).text
    assert not tool.calls
    assert (await called(house(tool, layers=asking, gate=gate(Gated(True))), count=1)).text == "x"
    assert asked == [Decision(Verdict.ASK, "global")] * 3


async def test_results_fit_a_request() -> None:
    result = await called(house(Counter()), count=MAX_TEXT * 3)
    assert len(result.text) < MAX_TEXT + 200
    assert "characters left out" in result.text
    big = Image("image/png", "x" * MAX_IMAGES)
    parts = bounded((Text("a"), big, Image("image/png", "y"), Text("b" * MAX_TEXT)))
    assert parts[:2] == (Text("a"), big)
    assert parts[2] == Text("[a picture (image/png, 1 bytes) is left out: too large]")
    assert bounded(()) == (Text("(no output)"),)


def test_a_context_names_the_run() -> None:
    made: ToolContext = context()
    assert made.run_id == RunId("run-1")


def test_what_was_decided_holds_until_the_rules_or_the_tools_change() -> None:
    tools: list[Tool] = [Counter()]
    layers: list[Layer] = []
    pipeline = Pipeline(lambda: tools, lambda _: layers, SystemClock())
    assert pipeline.rows(SCOPE) is pipeline.rows(SCOPE)
    assert list(pipeline.modes(SCOPE)) == ["counter"]
    layers.append(Layer("global", deny=("counter",)))
    assert not pipeline.specs(SCOPE)
    layers.clear()
    tools.append(Counter(ToolInfo("other", "Other", "Does.", COUNT)))
    assert list(pipeline.modes(SCOPE)) == ["counter", "other"]
