"""The buffered stream itself."""

from __future__ import annotations

import asyncio

from garra.core.errors import Failure, FailureKind, RunFailed
from garra.core.events import CallDelta, Done, Failed, TextDelta, ThinkingDelta
from garra.core.messages import Assistant, Text, Thinking, ToolCall, Usage
from garra.io.tasks import Tasks
from garra.sdk.stream import UNPARSED, Stream, arguments

BLANK = Assistant((), 7, api="a", provider="p", model="m")


async def test_parts_stand_in_the_order_of_their_index() -> None:
    stream = Stream(BLANK)
    stream.push(TextDelta(1, "b"))
    stream.push(ThinkingDelta(0, "a"))
    stream.draft.sign(0, "si")
    stream.draft.sign(0, "g")
    stream.push(CallDelta(2, "i", "ls", '{"x":'))
    stream.push(CallDelta(2, "i", "ls", "1}"))
    stream.push(TextDelta(3, ""))
    stream.done("toolUse", Usage(1, 2), "r")
    message = await stream.result()
    assert message.content == (Thinking("a", "sig"), Text("b"), ToolCall("i", "ls", {"x": 1}))
    assert (message.model, message.response_id, message.timestamp) == ("m", "r", 7)


async def test_what_comes_after_the_end_is_dropped() -> None:
    stream = Stream(BLANK)
    stream.done("stop")
    stream.push(TextDelta(0, "late"))
    stream.fail(Failure(FailureKind.CUT, "late"))
    stream.abort()
    assert [type(event) for event in [event async for event in stream]] == [Done]


async def test_a_failure_keeps_the_words_and_drops_the_calls() -> None:
    stream = Stream(BLANK)
    stream.push(TextDelta(0, "so far"))
    stream.push(CallDelta(1, "i", "ls", "{"))
    stream.fail(Failure(FailureKind.CUT, "it broke"))
    message = await stream.result()
    assert (message.content, message.stop, message.error) == ((Text("so far"),), "error", "it broke")


async def test_work_that_raises_or_forgets_its_end_still_ends() -> None:
    async with Tasks() as tasks:
        refused, silent = Stream(BLANK), Stream(BLANK)

        async def refuse() -> None:
            raise RunFailed(Failure(FailureKind.AUTH, "no"))

        async def forget() -> None:
            return

        refused.start(tasks, refuse, "refuse")
        silent.start(tasks, forget, "forget")
        assert (await refused.result()).error == "no"
        last = [event async for event in silent][-1]
        assert isinstance(last, Failed)
        assert last.failure.kind is FailureKind.UNKNOWN


async def test_abort_before_the_work_began() -> None:
    async with Tasks() as tasks:
        stream = Stream(BLANK)
        stream.start(tasks, lambda: asyncio.sleep(30), "work")
        stream.abort()
        assert (await stream.result()).stop == "aborted"


async def test_the_owners_end_ends_the_stream() -> None:
    stream = Stream(BLANK)
    async with Tasks() as tasks:
        stream.start(tasks, lambda: asyncio.sleep(30), "work")
        await asyncio.sleep(0)
    assert (await stream.result()).stop == "aborted"


async def test_several_may_listen() -> None:
    stream = Stream(BLANK)

    async def listen() -> int:
        return len([event async for event in stream])

    async with asyncio.TaskGroup() as group:
        heard = [group.create_task(listen()) for _ in range(3)]
        await asyncio.sleep(0)
        stream.push(TextDelta(0, "a"))
        await asyncio.sleep(0)
        stream.done("stop")
    assert [task.result() for task in heard] == [2, 2, 2]


def test_arguments() -> None:
    assert arguments("  ") == {}
    assert arguments('{"a": "line\nbreak"}') == {"a": "line\nbreak"}
    assert arguments('"{\\"a\\": 1}"') == {"a": 1}
    assert arguments("no") == {UNPARSED: "no"}
    assert arguments("3") == {UNPARSED: "3"}
