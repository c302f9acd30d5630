"""Tools as the agent's loop calls them: through the pipeline, in one run with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest

from garra.agent.calls import Tools
from garra.agent.loop import Loop, run
from garra.core.events import AgentEnded, AgentEvent, ToolEnded, ToolStarted, ToolUpdated
from garra.core.messages import Text, ToolResult, User
from garra.domains.tools.pipeline import Pipeline, Scope
from garra.io.clock import SystemClock
from garra.io.tasks import Tasks
from garra.sdk.tool import Call, Result, Tool, ToolInfo, Update
from garra.testing.model import Says, ScriptedModel, calls, says
from tests.builtin.tools.place import context

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
    "additionalProperties": False,
}


class Meeting:
    """Ends when as many calls are under way as are awaited, or says that it was alone."""

    def __init__(self, name: str, mode: Literal["parallel", "sequential"], together: asyncio.Barrier) -> None:
        self.info = ToolInfo(name, name, "Meets another.", {"type": "object", "properties": {}}, mode=mode)
        self.together = together

    async def execute(self, call: Call, update: Update) -> Result:
        update("waiting")
        try:
            async with asyncio.timeout(0.2):
                await self.together.wait()
        except (TimeoutError, asyncio.BrokenBarrierError):
            return Result.of("alone")
        return Result.of("together")


class Count:
    info = ToolInfo("count", "Count", "Counts.", SCHEMA)

    async def execute(self, call: Call, update: Update) -> Result:
        return Result.of(str(call.arguments["count"] + 1))


async def driven(tools: Sequence[Tool], script: Sequence[Says]) -> tuple[AgentEnded, list[AgentEvent]]:
    pipeline = Pipeline(lambda: tools, lambda _: (), SystemClock())
    where = context()
    scope = Scope(where.agent_id, where.session_key, where.origin)
    events: list[AgentEvent] = []
    async with Tasks() as tasks:
        loop = Loop(
            (),
            ScriptedModel(script),
            SystemClock(),
            tasks,
            prompts=(User((Text("go"),), 0),),
            tools=Tools(pipeline.modes(scope), lambda call, update: pipeline.call(call, where, update, scope)),
        )
        return await run(loop, events.append), events


def results(ended: AgentEnded) -> list[ToolResult]:
    return [message for message in ended.messages if isinstance(message, ToolResult)]


@pytest.mark.req("TOOL-02")
async def test_a_model_that_calls_wrongly_and_then_rightly_comes_to_its_end() -> None:
    wrong: Mapping[str, Any] = {"count": "many"}
    ended, _ = await driven([Count()], [calls("count", wrong), calls("count", {"count": 1}), says("done")])
    first, second = results(ended)
    assert (first.is_error, first.details["errorKind"]) == (True, "argument-validation")
    assert (second.is_error, second.text) == (False, "2")
    assert ended.failure is None


@pytest.mark.req("TOOL-03")
@pytest.mark.parametrize(("mode", "met"), [("parallel", "together"), ("sequential", "alone")])
async def test_one_sequential_tool_makes_the_batch_sequential(
    mode: Literal["parallel", "sequential"], met: str
) -> None:
    barrier = asyncio.Barrier(2)
    tools = [Meeting("a", "parallel", barrier), Meeting("b", mode, barrier)]
    batch = Says((), calls=(("a", {}), ("b", {})))
    ended, events = await driven(tools, [batch, says("done")])
    assert [result.text for result in results(ended)] == [met, met]
    order = [type(event) for event in events if isinstance(event, ToolStarted | ToolUpdated | ToolEnded)]
    if mode == "sequential":
        assert order == [ToolStarted, ToolUpdated, ToolEnded] * 2
    else:
        assert order[:2] == [ToolStarted, ToolStarted]
