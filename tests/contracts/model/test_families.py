"""What every API family owes, whatever stands behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from garra.core.errors import FailureKind
from garra.core.events import CallDelta, Done, Failed, TextDelta, ThinkingDelta
from garra.core.messages import Text, ToolCall, Usage
from garra.sdk.model import EventStream
from garra.testing.model_dialects import Cut, Fail, Say, Silence, Use
from tests.contracts.model.families import NAMES, Bench, bench

pytestmark = pytest.mark.timeout(40)  # the official library takes seconds to load where others build


@pytest.fixture(params=NAMES)
async def family(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with bench(request.param) as ready:
        yield ready


async def events(stream: EventStream) -> list[object]:
    return [event async for event in stream]


async def failure(stream: EventStream) -> FailureKind:
    last = (await events(stream))[-1]
    assert isinstance(last, Failed)
    assert last.failure.message.count("\n") == 0
    assert last.message.error == last.failure.message
    return last.failure.kind


@pytest.mark.req("LOOP-08")
async def test_words_arrive_as_they_come_and_whole_at_the_end(family: Bench) -> None:
    family.script(Say("Hello there, friend."))
    found = await events(family.api.stream(family.request(), "k"))
    words = [event for event in found if isinstance(event, TextDelta)]
    assert len(words) > 1
    assert "".join(event.delta for event in words) == "Hello there, friend."
    last = found[-1]
    assert isinstance(last, Done)
    assert last.message.content == (Text("Hello there, friend."),)
    assert (last.message.stop, last.message.usage) == ("stop", Usage(11, 5))
    assert (last.message.api, last.message.model) == (family.model.api, family.model.id)


@pytest.mark.req("LOOP-08")
async def test_a_call_arrives_with_its_arguments(family: Bench) -> None:
    family.script(Use("ls", {"path": "a b"}))
    found = await events(family.api.stream(family.request(), "k"))
    assert any(isinstance(event, CallDelta) and event.name == "ls" for event in found)
    last = found[-1]
    assert isinstance(last, Done)
    assert last.message.stop == "toolUse"
    [call] = last.message.content
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("ls", {"path": "a b"})
    assert call.id


@pytest.mark.req("MODEL-18")
async def test_whoever_attaches_late_gets_everything(family: Bench) -> None:
    family.script(Say("one two three"))
    stream = family.api.stream(family.request(), "k")
    message = await stream.result()
    first, second = await events(stream), await events(stream)
    assert first == second
    assert isinstance(first[0], TextDelta)
    assert isinstance(first[-1], Done)
    assert first[-1].message == message


@pytest.mark.req("MODEL-19")
async def test_a_cut_stream_is_an_error_and_keeps_its_words(family: Bench) -> None:
    family.script(Cut("partial words"))
    stream = family.api.stream(family.request(), "k")
    assert await failure(stream) is FailureKind.CUT
    message = await stream.result()
    assert message.stop == "error"
    assert message.text == "partial words"


@pytest.mark.req("MODEL-19")
@pytest.mark.parametrize("name", ["openai-completions", "anthropic-messages"])
async def test_a_stream_that_ends_politely_without_its_end_is_cut_too(name: str) -> None:
    async with bench(name) as family:
        family.script(Cut("partial", politely=True))
        assert await failure(family.api.stream(family.request(), "k")) is FailureKind.CUT


async def test_an_empty_answer_is_said_to_be_one(family: Bench) -> None:
    family.script(Say(""))
    assert await failure(family.api.stream(family.request(), "k")) is FailureKind.EMPTY


async def test_a_refusal_becomes_one_line(family: Bench) -> None:
    family.script(Fail(400, "forced bad request"))
    stream = family.api.stream(family.request(), "k")
    assert await failure(stream) is FailureKind.REFUSED
    assert "forced bad request" in ((await stream.result()).error or "")


async def test_silence_ends_by_the_first_timer(family: Bench) -> None:
    family.script(Silence())
    assert await failure(family.api.stream(family.request(first_s=0.2), "k")) is FailureKind.TIMEOUT


async def test_abort_ends_at_once_and_is_harmless_afterwards(family: Bench) -> None:
    family.script(Silence(), Say("next"))
    stream = family.api.stream(family.request(), "k")
    await asyncio.sleep(0.05)
    stream.abort()
    message = await asyncio.wait_for(stream.result(), 1)
    assert (message.stop, message.content) == ("aborted", ())
    stream.abort()
    assert await failure(stream) is FailureKind.CANCELLED
    assert (await family.api.stream(family.request(), "k").result()).text == "next"


async def test_cancelling_who_listens_does_not_stop_the_call(family: Bench) -> None:
    family.script(Say("whole"))
    stream = family.api.stream(family.request(), "k")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stream.result(), 0)
    assert (await stream.result()).text == "whole"


@pytest.mark.req("MODEL-02")
async def test_another_familys_model_is_refused(family: Bench) -> None:
    wrong = replace(family.request(), model=replace(family.model, api="other"))
    with pytest.raises(ValueError, match="speaks other"):
        family.api.stream(wrong, "k")


async def test_an_answer_cut_by_its_limit_says_length(family: Bench) -> None:
    family.script(Say("as far as it", finish="length"))
    message = await family.api.stream(family.request(), "k").result()
    assert (message.stop, message.text) == ("length", "as far as it")


@pytest.mark.parametrize("name", ["openai-completions", "anthropic-messages"])
async def test_thoughts_come_apart_from_words(name: str) -> None:
    async with bench(name) as family:
        family.script(Say("yes", thinking="hm, well"))
        found = await events(family.api.stream(family.request(thinking="low"), "k"))
        assert [event.delta for event in found if isinstance(event, ThinkingDelta)] == ["hm, well"]
        last = found[-1]
        assert isinstance(last, Done)
        assert last.message.text == "yes"
