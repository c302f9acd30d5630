"""The loop, driven by a scripted model and fake tools: no file, no socket, no clock that moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from garra.agent.calls import Update
from garra.agent.cancel import Cancel
from garra.agent.loop import Loop, run
from garra.core import turnlimits
from garra.core.errors import Failure, FailureKind
from garra.core.events import (
    AgentEnded,
    AgentEvent,
    Done,
    MessageEnded,
    MessageUpdated,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    TurnEnded,
)
from garra.core.messages import Assistant, Message, Text, Thinking, ToolCall, ToolResult, User
from garra.io.tasks import Tasks
from garra.sdk.stream import Stream
from garra.testing.clock import ManualClock, settle
from garra.testing.model import Says, ScriptedModel, calls, fails, says
from garra.testing.tools import FakeTools, ToolError, forever


def user(text: str) -> User:
    return User((Text(text),), 1)


class Rig:
    """A loop with everything written down."""

    def __init__(self, tasks: Tasks, script: ScriptedModel, tools: FakeTools | None = None) -> None:
        self.model, self.tools = script, tools or FakeTools({"echo": "ok"})
        self.events: list[AgentEvent] = []
        self.stored: list[Message] = []
        self.steering: list[User] = []
        self.waiting: list[User] = []
        self.cancel = Cancel()
        self.loop = Loop(
            history=(),
            stream=script,
            clock=ManualClock(),
            spawn=tasks,
            prompts=(user("hi"),),
            tools=self.tools.tools,
            store=self.store,
            steering=self._steered,
            follow_up=lambda: self._drain(self.waiting),
            steered=lambda: bool(self.steering),
            cancel=self.cancel,
        )

    async def _steered(self) -> list[User]:
        return self._drain(self.steering)

    @staticmethod
    def _drain(queue: list[User]) -> list[User]:
        taken = list(queue)
        queue.clear()
        return taken

    async def store(self, message: Message) -> None:
        await asyncio.sleep(0)
        self.stored.append(message)

    def emit(self, event: AgentEvent) -> None:
        if isinstance(event, MessageEnded):
            assert self.stored[-1] is event.message, "stored before it is told"
        self.events.append(event)

    async def run(self, **changes: Any) -> AgentEnded:
        return await run(replace(self.loop, **changes), self.emit)

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    async with Tasks() as group:
        yield group


def paired(messages: list[Message]) -> bool:
    """Each call is followed by its results, in order, before anything else is said."""
    wanted: list[str] = []
    for message in messages:
        if isinstance(message, ToolResult):
            if not wanted or wanted.pop(0) != message.call_id:
                return False
        elif wanted:
            return False
        elif isinstance(message, Assistant):
            wanted = [call.id for call in message.calls]
    return not wanted


@pytest.mark.req("LOOP-01", "LOOP-05", "MSG-12")
async def test_a_lambda_is_enough_of_a_model(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([says("hello ", "you")]))
    ended = await rig.run()
    assert ended.failure is None
    assert [type(message) for message in rig.stored] == [User, Assistant]
    assert rig.stored[-1] == ended.messages[-1]
    assert rig.model.requests == [(user("hi"),)]


@pytest.mark.req("LOOP-02")
async def test_calls_until_there_are_none(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([calls("echo", {"n": 1}), calls("echo", {"n": 2}), says("done")]))
    await rig.run()
    assert len(rig.model.requests) == 3
    assert [len(request) for request in rig.model.requests] == [1, 3, 5]
    assert paired(rig.stored)


@pytest.mark.req("LOOP-02", "LOOP-03")
async def test_steering_comes_before_the_next_answer_and_follow_up_when_it_would_stop(tasks: Tasks) -> None:
    def script(messages: tuple[Message, ...]) -> Says:
        if len(rig.model.requests) == 1:
            rig.waiting.append(user("later"))
            return calls("steer")
        return says("answer")

    async def steer(*_: object) -> str:
        rig.steering.append(user("now"))
        return "ok"

    rig = Rig(tasks, ScriptedModel(script), FakeTools({"steer": steer}))
    ended = await rig.run()
    said = [(type(message).__name__, message.text) for message in ended.messages]
    assert said == [
        ("User", "hi"),
        ("Assistant", ""),
        ("ToolResult", "ok"),
        ("User", "now"),
        ("Assistant", "answer"),
        ("User", "later"),
        ("Assistant", "answer"),
    ]
    assert rig.names.count("AgentStarted") == rig.names.count("AgentEnded") == 1


@pytest.mark.req("LOOP-08", "LOOP-15")
async def test_the_golden_list_of_events(tasks: Tasks) -> None:
    async def work(_: object, update: Callable[[str], None]) -> str:
        update("half")
        return "whole"

    first = Says(("Let me ", "look."), thought="hm", calls=(("work", {"a": 1}),))
    rig = Rig(tasks, ScriptedModel([first, says("Done.")]), FakeTools({"work": work}))
    await rig.run()
    assert rig.names == [
        "AgentStarted",
        "TurnStarted",
        "MessageStarted",
        "MessageEnded",
        "MessageStarted",
        "MessageUpdated",
        "MessageUpdated",
        "MessageUpdated",
        "MessageUpdated",
        "MessageEnded",
        "ToolStarted",
        "ToolUpdated",
        "ToolEnded",
        "MessageStarted",
        "MessageEnded",
        "TurnEnded",
        "TurnStarted",
        "MessageStarted",
        "MessageUpdated",
        "MessageEnded",
        "TurnEnded",
        "AgentEnded",
    ]
    updates = [event for event in rig.events if isinstance(event, MessageUpdated)]
    assert [type(update.delta).__name__ for update in updates] == [
        "ThinkingDelta", "TextDelta", "TextDelta", "CallDelta", "TextDelta",
    ]  # fmt: skip
    assert updates[2].text == updates[3].text == "Let me look."


@pytest.mark.req("LOOP-16")
async def test_thoughts_in_the_text_are_set_apart(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([says("<th", "ink>sec", "ret</thi", "nk>\n\nHel", "lo")]))
    await rig.run()
    updates = [event for event in rig.events if isinstance(event, MessageUpdated)]
    shown = "".join(event.delta.delta for event in updates if isinstance(event.delta, TextDelta))
    thought = "".join(event.delta.delta for event in updates if isinstance(event.delta, ThinkingDelta))
    assert (shown, thought, updates[-1].text) == ("Hello", "secret", "Hello")
    last = rig.stored[-1]
    assert isinstance(last, Assistant)
    assert last.content == (Thinking("secret"), Text("Hello"))


@pytest.mark.req("LOOP-04")
async def test_stopping_while_the_model_speaks_keeps_what_arrived(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([Says(("half an ans",), calls=(("echo", {}),), hangs=True)]))
    running = tasks(rig.run(), "run")
    await settle()
    rig.cancel.set("rpc")
    ended = await running
    last = rig.stored[-1]
    assert isinstance(last, Assistant)
    assert (last.stop, last.text, last.calls) == ("aborted", "half an ans", ())
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.CANCELLED
    assert rig.model.streams[-1].ended


@pytest.mark.req("LOOP-04")
async def test_stopping_while_tools_run_pairs_every_call(tasks: Tasks) -> None:
    answer = Says(calls=(("echo", {}), ("wait", {}), ("wait", {"n": 2})))
    rig = Rig(tasks, ScriptedModel([answer]), FakeTools({"echo": "ok", "wait": forever}))
    running = tasks(rig.run(), "run")
    await settle()
    rig.cancel.set("stop")
    await running
    assert paired(rig.stored)
    assert rig.tools.stopped == 2
    results = [message for message in rig.stored if isinstance(message, ToolResult)]
    assert [result.is_error for result in results] == [False, True, True]
    assert "Stopped" in results[1].text
    assert results[1].details == {"aborted": True}
    last = rig.stored[-1]
    assert isinstance(last, Assistant)
    assert last.stop == "aborted"
    assert len(rig.model.requests) == 1


async def test_a_stop_leaves_the_queues_to_their_owner(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([Says(hangs=True)]))
    running = tasks(rig.run(), "run")
    await settle()
    rig.steering.append(user("wait"))
    rig.waiting.append(user("later"))
    rig.cancel.set()
    await running
    assert (rig.steering, rig.waiting) == ([user("wait")], [user("later")])


async def test_a_stop_before_the_start_asks_no_model(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([says("no")]))
    rig.cancel.set()
    await rig.run()
    assert rig.model.requests == []
    assert [message.text for message in rig.stored] == ["hi", ""]


async def test_a_failed_answer_is_stored_without_its_cut_calls(tasks: Tasks) -> None:
    cut = Says(("I will",), calls=(("echo", {}),), fails=Failure(FailureKind.CUT, "the stream was cut"))
    rig = Rig(tasks, ScriptedModel([cut]))
    ended = await rig.run()
    last = rig.stored[-1]
    assert isinstance(last, Assistant)
    assert (last.stop, last.error, last.content) == ("error", "the stream was cut", (Text("I will"),))
    assert ended.failure == Failure(FailureKind.CUT, "the stream was cut")
    assert rig.tools.ran == []
    assert rig.names[-2:] == ["TurnEnded", "AgentEnded"]


@pytest.mark.req("LOOP-07")
async def test_a_transform_changes_what_is_asked_not_what_is_stored(tasks: Tasks) -> None:
    async def last_only(messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return messages[-1:]

    rig = Rig(tasks, ScriptedModel([calls("echo"), says("done")]))
    await rig.run(history=(user("old"),), transform=last_only)
    assert [len(request) for request in rig.model.requests] == [1, 1]
    assert len(rig.stored) == 4


async def test_an_empty_answer_is_asked_for_once_more(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([says(" "), says("there")]))
    ended = await rig.run()
    assert ended.failure is None
    assert [message.text.strip() for message in rig.stored] == ["hi", "", "there"]
    nudge = rig.model.requests[1][-1]
    assert isinstance(nudge, User)
    assert nudge not in rig.stored


@pytest.mark.parametrize("empty", [says(), Says(thought="hm"), says("<think>only thought"), Says(stop="length")])
async def test_empty_twice_is_one_failure(tasks: Tasks, empty: Says) -> None:
    rig = Rig(tasks, ScriptedModel([empty]))
    ended = await rig.run()
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.EMPTY
    assert len(rig.model.requests) == 2
    last = rig.stored[-1]
    assert isinstance(last, Assistant)
    assert last.stop == "error"


async def test_the_nudge_ends_with_a_call(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([says(), calls("echo"), says("done")]))
    await rig.run()
    assert isinstance(rig.model.requests[2][-1], ToolResult)


async def test_an_empty_answer_may_be_allowed(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([says()]))
    ended = await rig.run(may_be_empty=lambda: True)
    assert ended.failure is None
    assert len(rig.model.requests) == 1


@pytest.mark.parametrize(("fails_too", "ran"), [(True, 3), (False, 5)])
async def test_the_same_call_for_ever_ends_with_one_failure(tasks: Tasks, fails_too: bool, ran: int) -> None:
    async def act(*_: object) -> str:
        if fails_too:
            raise ToolError("no such file")
        return "same"

    rig = Rig(tasks, ScriptedModel([calls("act", {"b": 1, "a": 2})]), FakeTools({"act": act}))
    ended = await rig.run()
    assert len(rig.tools.ran) == ran
    assert len(rig.model.requests) == ran + 1
    results = [message for message in rig.stored if isinstance(message, ToolResult)]
    assert f"{ran} times" in results[-2].text
    assert results[-1].is_error
    assert paired(rig.stored)
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.TOOL_LOOP
    assert "act" in ended.failure.message


async def test_no_run_goes_on_for_ever(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel(lambda messages: calls("echo", {"n": len(messages)})))
    ended = await rig.run(limits=turnlimits.Limits(turns=7))
    assert len(rig.model.requests) == 7
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.TOOL_LOOP
    assert paired(rig.stored)


async def test_a_run_makes_so_many_calls_and_no_more(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel(lambda messages: calls("echo", {"n": len(messages)})))
    ended = await rig.run(limits=turnlimits.Limits(calls=3))
    assert len(rig.tools.ran) == 3
    assert ended.failure is not None
    assert "agents.defaults.maxToolCalls" in ended.failure.message
    assert paired(rig.stored)


async def test_tools_that_do_not_exist_end_the_run(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel(lambda messages: calls(f"made_up_{len(messages)}", {})))
    ended = await rig.run()
    assert len(rig.model.requests) == 11
    assert ended.failure is not None
    assert ended.failure.message == "Stopped: the model went on calling tools that do not exist."
    assert paired(rig.stored)


async def test_after_so_many_refusals_a_person_is_asked(tasks: Tasks) -> None:
    async def no(call: ToolCall, update: Update) -> str:
        raise ToolError("the owner said no", "denied")

    rig = Rig(tasks, ScriptedModel(lambda messages: calls("act", {"n": len(messages)})), FakeTools({"act": no}))
    ended = await rig.run(limits=turnlimits.Limits(refusals=4))
    assert len(rig.tools.ran) == 4
    assert ended.failure is not None
    assert ended.failure.message.startswith("Stopped: calls were refused 4 times. The last was act: the owner said no")
    assert paired(rig.stored)


async def test_what_may_not_be_paid_for_is_not_asked(tasks: Tasks) -> None:
    said: list[Failure | None] = [None, Failure(FailureKind.BUDGET, "The budget is used up.")]

    async def may() -> Failure | None:
        return said.pop(0)

    rig = Rig(tasks, ScriptedModel(lambda messages: calls("echo", {"n": len(messages)})))
    ended = await rig.run(may=may)
    assert len(rig.model.requests) == 1
    assert ended.failure is not None
    assert (ended.failure.kind, ended.failure.message) == (FailureKind.BUDGET, "The budget is used up.")
    assert paired(rig.stored)


async def test_calls_cut_by_the_length_limit_do_not_run(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([says("done")]))
    cut = [Done(Assistant((ToolCall("c1", "echo", {}),), 1, stop="length"))]

    def stream(messages: tuple[Message, ...]) -> Stream:
        if not cut:
            return rig.model(messages)
        made = Stream(Assistant((), 1))
        made.push(cut.pop())
        return made

    await rig.run(stream=stream)
    assert rig.tools.ran == []
    assert paired(rig.stored)
    assert "length limit" in rig.stored[2].text


async def test_what_the_store_raises_stops_everything(tasks: Tasks) -> None:
    rig = Rig(
        tasks, ScriptedModel([Says(calls=(("echo", {}), ("wait", {})))]), FakeTools({"echo": "ok", "wait": forever})
    )

    async def full(message: Message) -> None:
        if isinstance(message, ToolResult):
            raise OSError("no space left")
        await rig.store(message)

    with pytest.raises(OSError, match="no space"):
        await rig.run(store=full)
    await settle()
    assert rig.tools.stopped == 1
    assert len(tasks) == 0


async def test_failures_name_turns(tasks: Tasks) -> None:
    rig = Rig(tasks, ScriptedModel([fails()]))
    await rig.run()
    assert sum(isinstance(event, TurnEnded) for event in rig.events) == 1
    assert not any(isinstance(event, ToolEnded) for event in rig.events)
