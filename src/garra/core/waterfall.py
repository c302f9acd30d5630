"""A turn as spans: its marks, and the stations of its messages, put on one line of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import Any, Final, Literal

from garra.core.trace import Marks, Request, Step
from garra.core.value import frozen, replace

Kind = Literal["turn", "inbox", "queue", "context", "model", "tool", "approval", "compaction", "send"]
ROOT: Final = "1"
OVER: Final = frozenset({"sent", "unsure", "dead", "later", "degraded", "dropped"})
"""Stations that end one try to send."""
_BEFORE: Final = {"admitted": "received", "routed": "admitted", "queued": "routed", "adopted": "routed"}


@frozen
class Span:
    """One step. `parent` is empty for the whole; `end_ms` None while it lasts. No words of messages are in it."""

    id: str
    parent: str
    name: str
    kind: Kind
    start_ms: int
    end_ms: int | None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Passed:
    """`message` passed `station` at this moment."""

    at: int
    message: str
    station: str


@frozen
class Letter:
    """A message that came in, or goes out."""

    id: str
    way: Literal["in", "out"]
    channel: str
    state: str


@frozen
class Told:
    """Of whom a trace tells."""

    run: str
    session: str
    agent: str
    origin: str
    led_by: str = ""


def spans(told: Told, marks: Marks, letters: Sequence[Letter] = (), passed: Sequence[Passed] = ()) -> tuple[Span, ...]:
    """Every step, the whole first, the others by when they began."""
    numbers = count(2)
    inner = [
        span
        for group in (
            _inbox(letters, passed),
            _run(told, marks),
            _requests(marks),
            _tools(marks),
            _outbox(letters, passed),
        )
        for span in group
    ]
    named: list[Span] = []
    ids: dict[str, str] = {}
    for span in inner:
        number = str(next(numbers))
        if span.id:
            ids[span.id] = number
        named.append(replace(span, id=number, parent=ids.get(span.parent, ROOT)))
    whole = _whole(told, marks, named)
    return (whole, *sorted(named, key=lambda span: (span.start_ms, int(span.id))))


def _whole(told: Told, marks: Marks, inner: Sequence[Span]) -> Span:
    first = min([marks.accepted, *(span.start_ms for span in inner)])
    ends = [span.end_ms for span in inner]
    is_open = not marks.ending or any(end is None for end in ends)
    last = None if is_open else max([marks.ended, *(end for end in ends if end is not None)])
    usage = [each.usage for each in marks.requests]
    attributes: dict[str, Any] = {
        "runId": told.run,
        "sessionKey": told.session,
        "agentId": told.agent,
        "origin": told.origin,
        "outcome": marks.ending or "running",
        "modelRequests": len(marks.requests),
        "toolCalls": len(marks.tools),
        "inputTokens": sum(each.input for each in usage),
        "outputTokens": sum(each.output for each in usage),
        "costUsd": round(sum(each.cost for each in usage), 6),
    }
    more = {"failure": marks.failure, "ledBy": told.led_by, "leftOut": marks.left_out}
    return Span(
        ROOT, "", "turn", "turn", first, last, attributes | {key: value for key, value in more.items() if value}
    )


def _inbox(letters: Sequence[Letter], passed: Sequence[Passed]) -> Iterator[Span]:
    """From the moment a message was stored until a run had it."""
    for letter in letters:
        if letter.way == "in":
            yield from _arrival(
                letter, {each.station: each.at for each in reversed(passed) if each.message == letter.id}
            )


def _arrival(letter: Letter, at: Mapping[str, int]) -> Iterator[Span]:
    about = {"messageId": letter.id, "channel": letter.channel}
    if "received" not in at:
        return
    yield Span("", "", "received", "inbox", at["received"], at["received"], {**about, "state": letter.state})
    for station in ("admitted", "routed"):
        if station in at:
            began = at.get(_BEFORE[station], at["received"])
            yield Span("", "", station, "inbox", began, at[station], about)


def _run(told: Told, marks: Marks) -> Iterator[Span]:
    """Waiting, then what is done before a model is asked."""
    start = marks.phases[0][1] if marks.phases else marks.ended
    joined = {"ledBy": told.led_by} if told.led_by else {}
    yield Span("", "", "queued", "queue", marks.accepted, start or None, joined)
    if marks.phases:
        ready = next((at for name, at in marks.phases if name == "starting_model"), marks.ended)
        steps = {name: at - start for name, at in marks.phases}
        yield Span("", "", "context", "context", start, ready or None, {"phasesMs": steps})
    for each in marks.compactions:
        about = {"why": each.kind, "step": each.result or "none", "before": each.before, "after": each.after}
        yield Span("", "", "compaction", "compaction", each.began, each.ended or _last(marks), about)


def _requests(marks: Marks) -> Iterator[Span]:
    for number, each in enumerate(marks.requests, 1):
        yield Span("", "", f"{each.provider}/{each.model}", "model", each.began, each.ended, _asked(number, each))


def _asked(number: int, each: Request) -> dict[str, Any]:
    usage = each.usage
    about: dict[str, Any] = {
        "number": number,
        "provider": each.provider,
        "model": each.model,
        "result": each.result,
        "level": each.level,
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cacheReadTokens": usage.cache_read,
        "cacheWriteTokens": usage.cache_write,
        "costUsd": round(usage.cost, 6),
    }
    more = {
        "firstTokenMs": each.first - each.began if each.first else None,
        "status": each.status,
        "waitedMs": each.waited or None,
    }
    return about | {key: value for key, value in more.items() if value is not None}


def _tools(marks: Marks) -> Iterator[Span]:
    for each in marks.tools:
        waits = [one for one in marks.asked if one.call == each.call]
        waited = sum((one.ended or _last(marks) or one.began) - one.began for one in waits)
        about: dict[str, Any] = {"tool": each.name, "callId": each.call, "result": each.result or "running"}
        if waits:
            about["approvalWaitMs"] = waited
        yield Span(each.call, "", each.name, "tool", each.began, each.ended or _last(marks), about)
        for one in waits:
            yield _approval(one, each.call, marks)
    known = {each.call for each in marks.tools}
    for one in marks.asked:
        if one.call not in known:
            yield _approval(one, "", marks)


def _approval(one: Step, parent: str, marks: Marks) -> Span:
    about = {"approvalId": one.name, "kind": one.kind, "result": one.result or "waiting"}
    return Span("", parent, "approval", "approval", one.began, one.ended or _last(marks), about)


def _last(marks: Marks) -> int | None:
    """What never ended by itself ended with its run."""
    return marks.ended or None


def _outbox(letters: Sequence[Letter], passed: Sequence[Passed]) -> Iterator[Span]:
    """Each answer: how long it waited, and each try to send it until the platform's word."""
    for letter in letters:
        if letter.way == "out":
            story = [each for each in passed if each.message == letter.id]
            yield from _sending(letter, story)


def _sending(letter: Letter, story: Sequence[Passed]) -> Iterator[Span]:
    about = {"messageId": letter.id, "channel": letter.channel}
    written = next((each.at for each in story if each.station == "written"), 0)
    tries = list(_tries(story))
    end = tries[0][0] if tries else None
    if written:
        yield Span("", "", "outbox", "queue", written, end if end or letter.state == "pending" else written, about)
    for number, (began, ended, result) in enumerate(tries, 1):
        detail = {**about, "try": number, "result": result or letter.state}
        if result == "sent":
            detail["confirmed"] = True
        over = ended if ended or letter.state == "sending" else began
        yield Span("", "", "send", "send", began, over, detail)


def _tries(story: Iterable[Passed]) -> Iterator[tuple[int, int | None, str]]:
    """(began, ended, how) of each try."""
    began = 0
    for each in story:
        if each.station == "sending":
            if began:
                yield began, None, ""
            began = each.at
        elif began and each.station in OVER:
            yield began, each.at, each.station
            began = 0
    if began:
        yield began, None, ""
