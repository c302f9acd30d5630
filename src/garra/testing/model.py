"""A model that says what a script tells it, as `EventStream`s, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from garra.core.errors import Failure, FailureKind
from garra.core.events import CallDelta, StreamEvent, TextDelta, ThinkingDelta
from garra.core.messages import Assistant, Message, Stop, Usage
from garra.core.value import frozen
from garra.sdk.stream import Stream

_USAGE = Usage(input=10, output=5)


@frozen
class Says:
    """One answer: words in these pieces, thought before them, then calls as (name, arguments).

    `fails` ends it with that failure instead; `hangs` leaves it open until it is aborted.
    """

    words: tuple[str, ...] = ()
    thought: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    stop: Stop | None = None
    fails: Failure | None = None
    hangs: bool = False
    usage: Usage = _USAGE


def says(*words: str) -> Says:
    return Says(words)


def calls(name: str, arguments: Mapping[str, Any] | None = None, *, words: str = "") -> Says:
    return Says((words,) if words else (), calls=((name, arguments or {}),))


def fails(
    kind: FailureKind = FailureKind.SERVER, message: str = "the model's server failed (500)", *words: str
) -> Says:
    return Says(words, fails=Failure(kind, message))


Script = Iterable[Says] | Callable[[tuple[Message, ...]], Says]


class ScriptedModel:
    """`model(messages)` starts an answer; `requests` holds what each was asked with.

    A script is a list of answers, the last repeated for ever, or a function of the messages.
    """

    def __init__(self, script: Script, now_ms: int = 1_760_000_000_000) -> None:
        self._script = script if callable(script) else list(script)
        self._now = now_ms
        self.requests: list[tuple[Message, ...]] = []
        self.streams: list[Stream] = []
        self._ids = 0

    def __call__(self, messages: tuple[Message, ...]) -> Stream:
        self.requests.append(messages)
        stream = Stream(Assistant((), self._now, api="scripted", provider="scripted", model="scripted"))
        self.streams.append(stream)
        self._fill(stream, self._next(messages))
        return stream

    def _next(self, messages: tuple[Message, ...]) -> Says:
        if callable(self._script):
            return self._script(messages)
        return self._script[min(len(self.requests), len(self._script)) - 1]

    def _fill(self, stream: Stream, answer: Says) -> None:
        for event in self._deltas(answer):
            stream.push(event)
        if answer.hangs:
            return
        if answer.fails is not None:
            stream.fail(answer.fails)
        else:
            stream.done(answer.stop or ("toolUse" if answer.calls else "stop"), answer.usage)

    def _deltas(self, answer: Says) -> Iterable[StreamEvent]:
        if answer.thought:
            yield ThinkingDelta(0, answer.thought)
        for word in answer.words:
            yield TextDelta(1, word)
        for index, (name, arguments) in enumerate(answer.calls, start=2):
            self._ids += 1
            yield CallDelta(index, f"call_{self._ids}", name, json.dumps(dict(arguments)))
