"""One answer's calls: side by side or in order, and one result for each whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from garra.agent.calls import GRACE_S, Batch, Mode, Tools, Update
from garra.agent.cancel import Cancel
from garra.core.events import AgentEvent, ToolEnded, ToolStarted, ToolUpdated
from garra.core.messages import ToolCall, ToolResult
from garra.io.tasks import Tasks
from garra.testing.clock import ManualClock, settle
from garra.testing.tools import Act, FakeTools, ToolError, forever


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    async with Tasks() as group:
        yield group


class Rig:
    """A batch and all it did."""

    def __init__(self, tasks: Tasks, tools: Tools, *names: str, skip: Callable[[], str] = lambda: "") -> None:
        self.events: list[AgentEvent] = []
        self.kept: list[ToolResult] = []
        self.cancel, self.clock = Cancel(), ManualClock()
        made = [ToolCall(f"c{number}", name, {}) for number, name in enumerate(names)]
        self.batch = Batch(made, tools, self.cancel, self.events.append, self.clock, tasks, skip)

    async def keep(self, result: ToolResult) -> None:
        self.kept.append(result)

    async def settle(self) -> tuple[ToolResult, ...]:
        return await self.batch.settle(self.keep)

    def names(self, kind: type[ToolStarted] | type[ToolEnded]) -> list[str]:
        return [event.call.id for event in self.events if isinstance(event, kind)]


def sleepers(clock: list[ManualClock], modes: dict[str, Mode] | None = None, **seconds: float) -> FakeTools:
    """Tools that sleep on a clock given later."""

    def act(length: float) -> Act:
        async def sleep(call: ToolCall, _: Update) -> str:
            await clock[0].sleep(length)
            return f"{call.id} slept"

        return sleep

    return FakeTools({name: act(length) for name, length in seconds.items()}, modes)


@pytest.mark.req("TOOL-03")
@pytest.mark.parametrize(("mode", "takes"), [("parallel", 1.0), ("sequential", 2.0)])
async def test_two_tools_of_a_second(tasks: Tasks, mode: Mode, takes: float) -> None:
    clock: list[ManualClock] = []
    rig = Rig(tasks, sleepers(clock, {"b": mode}, a=1.0, b=1.0).tools, "a", "b")
    clock.append(rig.clock)
    running = tasks(rig.settle(), "batch")
    await rig.clock.advance(takes - 0.01)
    assert not running.done()
    await rig.clock.advance(0.01)
    assert [result.text for result in await running] == ["c0 slept", "c1 slept"]
    assert [event.duration_ms for event in rig.events if isinstance(event, ToolEnded)] == [1000, 1000]


@pytest.mark.req("TOOL-03")
async def test_results_come_in_the_order_of_the_calls(tasks: Tasks) -> None:
    clock: list[ManualClock] = []
    rig = Rig(tasks, sleepers(clock, slow=3.0, quick=1.0).tools, "slow", "quick")
    clock.append(rig.clock)
    running = tasks(rig.settle(), "batch")
    await rig.clock.advance(1)
    assert rig.kept == [], "the first one's result comes first"
    await rig.clock.advance(2)
    assert [result.call_id for result in await running] == ["c0", "c1"]
    assert rig.names(ToolStarted) == ["c0", "c1"]
    assert rig.names(ToolEnded) == ["c1", "c0"]


async def test_a_result_is_kept_as_soon_as_those_before_it(tasks: Tasks) -> None:
    rig = Rig(tasks, FakeTools({"quick": "ok", "wait": forever}).tools, "quick", "wait")
    tasks(rig.settle(), "batch")
    await settle()
    assert [result.text for result in rig.kept] == ["ok"]


async def test_an_unknown_tool_is_told_what_there_is(tasks: Tasks) -> None:
    rig = Rig(tasks, FakeTools({"read": "ok"}).tools, "raed", "read")
    first, second = await rig.settle()
    assert first.is_error
    assert "no tool raed" in first.text
    assert "read" in first.text
    assert second.text == "ok"
    (none,) = await Rig(tasks, Tools(), "x").settle()
    assert "Tools: none" in none.text


async def test_updates_are_forwarded_until_the_end(tasks: Tasks) -> None:
    late: list[Callable[[str], None]] = []

    async def act(_: ToolCall, update: Callable[[str], None]) -> str:
        update("one")
        update("one two")
        late.append(update)
        return "done"

    rig = Rig(tasks, FakeTools({"act": act}).tools, "act")
    await rig.settle()
    late[0]("too late")
    assert [event.partial for event in rig.events if isinstance(event, ToolUpdated)] == ["one", "one two"]


async def test_a_failing_tool_fails_alone(tasks: Tasks) -> None:
    async def act(*_: object) -> str:
        raise ToolError("no such file")

    results = await Rig(tasks, FakeTools({"bad": act, "good": "ok"}).tools, "bad", "good").settle()
    assert [(result.is_error, result.text) for result in results] == [(True, "no such file"), (False, "ok")]


async def test_a_tool_that_breaks_is_a_failed_result(tasks: Tasks, caplog: pytest.LogCaptureFixture) -> None:
    async def act(*_: object) -> str:
        raise RuntimeError("a fault of ours")

    (result,) = await Rig(tasks, FakeTools({"act": act}).tools, "act").settle()
    assert result.is_error
    assert "a fault of ours" not in result.text
    assert "a fault of ours" in caplog.text


@pytest.mark.req("LOOP-04")
@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_a_stop_gives_every_call_its_result(tasks: Tasks, mode: Mode) -> None:
    tools = FakeTools({"wait": forever}, {"wait": mode})
    rig = Rig(tasks, tools.tools, "wait", "wait", "wait")
    running = tasks(rig.settle(), "batch")
    await settle()
    rig.cancel.set()
    results = await running
    assert [result.call_id for result in results] == ["c0", "c1", "c2"]
    assert all(result.is_error and result.details == {"aborted": True} for result in results)
    assert tools.stopped == (3 if mode == "parallel" else 1)
    assert rig.names(ToolStarted) == rig.names(ToolEnded) == ["c0", "c1", "c2"]
    assert len(tasks) == 0


async def test_a_stop_before_a_tool_begins_keeps_it_from_beginning(tasks: Tasks) -> None:
    tools = FakeTools({"act": "ok"})
    rig = Rig(tasks, tools.tools, "act")
    running = tasks(rig.settle(), "batch")
    asyncio.get_running_loop().call_soon(rig.cancel.set)
    (result,) = await running
    assert result.is_error
    assert tools.ran == []


async def test_a_tool_that_does_not_let_go_is_left_behind(tasks: Tasks) -> None:
    async def stubborn(*args: object) -> str:
        for _ in range(2):
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                continue
        return "late"

    rig = Rig(tasks, FakeTools({"stubborn": stubborn}).tools, "stubborn")
    running = tasks(rig.settle(), "batch")
    await settle()
    rig.cancel.set()
    async with asyncio.timeout(GRACE_S + 5):
        (result,) = await running
    assert "did not end in time" in result.text
    assert len(tasks) == 1, "its owner still has it"


async def test_a_new_message_keeps_later_calls_from_starting(tasks: Tasks) -> None:
    came: list[str] = []

    async def act(*_: object) -> str:
        came.append("Not run: a new message came first.")
        return "ok"

    tools = FakeTools({"act": act}, {"act": "sequential"})
    rig = Rig(tasks, tools.tools, "act", "act", skip=lambda: "".join(came))
    results = await rig.settle()
    assert [result.is_error for result in results] == [False, True]
    assert len(tools.ran) == 1


async def test_cancelling_the_batch_cancels_its_tools(tasks: Tasks) -> None:
    tools = FakeTools({"wait": forever})
    rig = Rig(tasks, tools.tools, "wait", "wait")
    running = tasks(rig.settle(), "batch")
    await settle()
    running.cancel()
    await settle()
    assert tools.stopped == 2
    assert len(tasks) == 0
