"""Which model answers when one fails."""

from __future__ import annotations

import asyncio

import pytest

from garra.core.errors import Failure, FailureKind
from garra.core.events import Done, Failed, StreamEvent, TextDelta
from garra.core.messages import Assistant
from garra.io.tasks import Tasks
from garra.runs.chain import Chain, Leg, Ports
from garra.sdk.model import EventStream, Model
from garra.sdk.stream import Stream


def model(name: str) -> Model:
    return Model("p", name, "fake", "http://x")


def failing(kind: FailureKind, *words: str, wait_ms: int | None = None) -> EventStream:
    stream = Stream(Assistant((), 0))
    for word in words:
        stream.push(TextDelta(0, word))
    stream.fail(Failure(kind, f"it was {kind.value}.", retry_after_ms=wait_ms))
    return stream


def saying(text: str) -> EventStream:
    stream = Stream(Assistant((), 0))
    stream.push(TextDelta(0, text))
    stream.done("stop")
    return stream


async def walk(
    script: dict[str, EventStream], resting: str = "", legs: list[Leg] | None = None
) -> tuple[list[StreamEvent], list[str], list[str]]:
    """The events, how each attempt went, and who was asked."""
    chosen: list[str] = []
    results: list[str] = []

    def started(m: Model, leg: Leg) -> EventStream:
        if legs is not None:
            legs.append(leg)
        return script[m.id]

    async with Tasks() as spawn:
        ports = Ports(
            started, spawn, lambda m: chosen.append(m.id), lambda _p, _m, result: results.append(result),
            lambda m: m.id == resting,
        )  # fmt: skip
        events = [event async for event in Chain([model(name) for name in script], ports).stream(0)]
    return events, results, chosen


async def test_the_first_that_answers() -> None:
    events, results, chosen = await walk({"a": failing(FailureKind.NO_KEY), "b": saying("hi"), "c": saying("no")})
    assert isinstance(events[-1], Done)
    assert events[-1].message.text == "hi"
    assert results == ["missing_key", "success"]
    assert chosen == ["a", "b"]


@pytest.mark.parametrize("kind", [FailureKind.CANCELLED, FailureKind.OVERFLOW, FailureKind.FILTERED])
async def test_some_failures_are_final(kind: FailureKind) -> None:
    events, _, chosen = await walk({"a": failing(kind), "b": saying("hi")})
    assert isinstance(events[-1], Failed)
    assert chosen == ["a"]


async def test_what_was_shown_stays_and_the_next_goes_on_behind_it() -> None:
    legs: list[Leg] = []
    events, _, chosen = await walk({"a": failing(FailureKind.CUT, "half"), "b": saying(" and half")}, legs=legs)
    assert chosen == ["a", "b"]
    assert legs[-1] == Leg("half", 0)
    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["half", " and half"]
    assert isinstance(events[-1], Done)
    assert events[-1].message.text == "half and half"


async def test_a_model_at_rest_is_asked_last() -> None:
    _, _, chosen = await walk({"a": saying("no"), "b": failing(FailureKind.SERVER), "c": saying("hi")}, resting="a")
    assert chosen == ["b", "c"]


@pytest.mark.req("MODEL-17")
async def test_when_all_are_limited_the_line_has_the_soonest_time() -> None:
    slow, quick = (failing(FailureKind.RATE_LIMIT, wait_ms=wait) for wait in (300_000, 30_000))
    events, _, _ = await walk({"a": slow, "b": quick, "c": failing(FailureKind.AUTH)})
    assert isinstance(events[-1], Failed)
    assert events[-1].failure.message.endswith(
        "Every model failed: p/a, p/b (rate_limit), p/c (auth). Retry in 30 s (p/b)."
    )
    assert events[-1].failure.retry_after_ms == 30_000


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
        ports = Ports(lambda *_: silent, spawn, lambda _: None, lambda *_: None)
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
