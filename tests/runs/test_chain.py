"""Which model answers when one fails."""

from __future__ import annotations

import asyncio

import pytest

from garra.core.errors import Failure, FailureKind
from garra.core.events import Done, Failed, StreamEvent, TextDelta
from garra.core.messages import Assistant
from garra.io.tasks import Tasks
from garra.runs.chain import Chain, Ports
from garra.sdk.model import EventStream, Model
from garra.sdk.stream import Stream


def model(name: str) -> Model:
    return Model("p", name, "fake", "http://x")


def failing(kind: FailureKind, *words: str) -> EventStream:
    stream = Stream(Assistant((), 0))
    for word in words:
        stream.push(TextDelta(0, word))
    stream.fail(Failure(kind, f"it was {kind.value}."))
    return stream


def saying(text: str) -> EventStream:
    stream = Stream(Assistant((), 0))
    stream.push(TextDelta(0, text))
    stream.done("stop")
    return stream


async def walk(script: dict[str, EventStream]) -> tuple[list[StreamEvent], list[str], list[str]]:
    """The events, how each attempt went, and who was asked."""
    chosen: list[str] = []
    results: list[str] = []
    async with Tasks() as spawn:
        ports = Ports(
            lambda m: script[m.id], spawn, lambda m: chosen.append(m.id), lambda _p, _m, result: results.append(result)
        )
        events = [event async for event in Chain([model(name) for name in script], ports).stream(0)]
    return events, results, chosen


async def test_the_first_that_answers() -> None:
    events, results, chosen = await walk({"a": failing(FailureKind.NO_KEY), "b": saying("hi"), "c": saying("no")})
    assert isinstance(events[-1], Done)
    assert events[-1].message.text == "hi"
    assert results == ["missing_key", "success"]
    assert chosen == ["a", "b"]


@pytest.mark.parametrize("kind", [FailureKind.CANCELLED, FailureKind.OVERFLOW])
async def test_some_failures_are_final(kind: FailureKind) -> None:
    events, _, chosen = await walk({"a": failing(kind), "b": saying("hi")})
    assert isinstance(events[-1], Failed)
    assert chosen == ["a"]


async def test_what_was_shown_is_not_taken_back() -> None:
    events, _, chosen = await walk({"a": failing(FailureKind.CUT, "half"), "b": saying("hi")})
    assert isinstance(events[-1], Failed)
    assert events[0] == TextDelta(0, "half")
    assert chosen == ["a"]


async def test_when_all_fail_the_line_names_all() -> None:
    events, _, _ = await walk({"a": failing(FailureKind.AUTH), "b": failing(FailureKind.RATE_LIMIT)})
    assert isinstance(events[-1], Failed)
    line = events[-1].failure.message
    assert line == "it was rate_limit. Every model failed: p/a (auth), p/b (rate_limit)."


async def test_one_failure_speaks_for_itself() -> None:
    events, _, _ = await walk({"a": failing(FailureKind.AUTH)})
    assert isinstance(events[-1], Failed)
    assert events[-1].failure.message == "it was auth."


async def test_a_stop_reaches_the_model_that_is_asked() -> None:
    silent = Stream(Assistant((), 0))
    async with Tasks() as spawn:
        ports = Ports(lambda _: silent, spawn, lambda _: None, lambda *_: None)
        chain = Chain([model("a"), model("b")], ports)
        stream = chain.stream(0)
        events = aiter(stream)
        spawn(_stop_when_asked(silent, stream), "stop")
        last = [event async for event in events][-1]
    assert isinstance(last, Failed)
    assert last.failure.kind is FailureKind.CANCELLED
    assert silent.ended


async def _stop_when_asked(inner: Stream, outer: EventStream) -> None:
    await asyncio.sleep(0.01)
    outer.abort()
    assert inner.ended
