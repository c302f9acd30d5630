"""An answer that arrives: a buffered `EventStream` that families, hosts and tests fill by pushing events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import field
from typing import Any

from garra.core.errors import Failure, FailureKind, RunFailed
from garra.core.events import CallDelta, Done, Failed, StreamEvent, TextDelta, ThinkingDelta
from garra.core.messages import Assistant, Part, Stop, Text, Thinking, ToolCall, Usage
from garra.core.value import frozen, record, replace
from garra.sdk.model import Model
from garra.sdk.ports import Clock, Spawn, Task

UNPARSED = "__unparsed__"
"""The one argument of a call whose arguments were no JSON object; its value is what the model wrote."""


@record
class _Piece:
    """One growing part: `made` turns the joined words into it."""

    made: Callable[[str], Part | None]
    words: list[str] = field(default_factory=list)


class Draft:
    """The message so far, put together from deltas. Parts stand in the order of their `index`."""

    def __init__(self) -> None:
        self._pieces: dict[int, _Piece] = {}
        self._signatures: dict[int, str] = {}

    def add(self, event: TextDelta | ThinkingDelta | CallDelta) -> None:
        piece = self._pieces.get(event.index)
        if piece is None:
            piece = self._pieces[event.index] = _Piece(self._maker(event))
        piece.words.append(event.delta)

    def sign(self, index: int, signature: str) -> None:
        """Give the thinking part at `index` its opaque signature."""
        self._signatures[index] = self._signatures.get(index, "") + signature

    def parts(self, *, calls: bool = True) -> tuple[Part, ...]:
        """What there is; empty words are left out, and so are calls when `calls` is false."""
        made = (piece.made("".join(piece.words)) for _, piece in sorted(self._pieces.items()))
        return tuple(part for part in made if part is not None and (calls or not isinstance(part, ToolCall)))

    def _maker(self, event: TextDelta | ThinkingDelta | CallDelta) -> Callable[[str], Part | None]:
        index = event.index
        match event:
            case TextDelta():
                return lambda words: Text(words) if words else None
            case ThinkingDelta():
                return lambda words: self._thought(index, words)
            case CallDelta(id=call_id, name=name):
                return lambda words: ToolCall(call_id, name, arguments(words))

    def _thought(self, index: int, words: str) -> Thinking | None:
        signature = self._signatures.get(index)
        return Thinking(words, signature) if words or signature else None


def arguments(text: str) -> dict[str, Any]:
    """The arguments a model wrote. What is no JSON object comes back whole under `UNPARSED`, for the tool's check."""
    if not text.strip():
        return {}
    try:
        found = json.loads(text, strict=False)
        if isinstance(found, str):  # some servers encode the object twice
            found = json.loads(found, strict=False)
    except ValueError:
        return {UNPARSED: text}
    return found if isinstance(found, dict) else {UNPARSED: text}


class Stream:
    """One answer as `sdk.model.EventStream`.

    `blank` says who answers: api, provider, model, timestamp. Push deltas, then `done` or `fail`; what comes after the
    end is dropped. All calls are made on the event loop's thread.
    """

    def __init__(self, blank: Assistant) -> None:
        self.draft = Draft()
        self._blank = blank
        self._events: list[StreamEvent] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._task: Task | None = None
        self._end: Done | Failed | None = None

    @property
    def ended(self) -> bool:
        return self._end is not None

    def start(self, spawn: Spawn, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Let `work` fill this stream in a task of its own. RunFailed in it ends the stream with that failure."""
        self._task = spawn(self._driven(work), name)

    def push(self, event: StreamEvent) -> None:
        """Add one event; `Done` and `Failed` end the stream."""
        if self._end is not None:
            return
        if isinstance(event, Done | Failed):
            self._end = event
        else:
            self.draft.add(event)
        self._events.append(event)
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def done(self, stop: Stop, usage: Usage | None = None, response_id: str | None = None) -> None:
        """End well with what was pushed. Calls of an answer that was cut by its length limit are left out."""
        content = self.draft.parts(calls=stop != "length")
        self.push(
            Done(replace(self._blank, content=content, stop=stop, usage=usage or Usage(), response_id=response_id))
        )

    def fail(self, failure: Failure) -> None:
        """End badly with what was pushed. Calls are left out: nobody may run them."""
        stop: Stop = "aborted" if failure.kind is FailureKind.CANCELLED else "error"
        content = self.draft.parts(calls=False)
        self.push(Failed(replace(self._blank, content=content, stop=stop, error=failure.message), failure))

    def abort(self) -> None:
        """End now with stop `aborted`; harmless when it has ended."""
        if self._end is None:
            self.fail(Failure(FailureKind.CANCELLED, "stopped", provider=self._blank.provider, model=self._blank.model))
        if self._task is not None:
            self._task.cancel()

    async def result(self) -> Assistant:
        while self._end is None:
            await self._more()
        return self._end.message

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        at = 0
        while True:
            while at < len(self._events):
                at += 1
                yield self._events[at - 1]
            if self._end is not None:
                return
            await self._more()

    async def _more(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    async def _driven(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except RunFailed as failed:
            self.fail(failed.failure)
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            if self._end is None:
                line = "the model's answer ended without saying how; run it again, and report it if it repeats"
                self.fail(Failure(FailureKind.UNKNOWN, line, provider=self._blank.provider, model=self._blank.model))


Answering = Callable[[Stream], Coroutine[Any, Any, None]]
"""Fills a stream with one model's answer."""


@frozen
class Answers:
    """How a family of models opens the stream of an answer: each in a task of its own, none of another family's."""

    family: str
    clock: Clock
    spawn: Spawn

    def begin(self, model: Model, work: Answering) -> Stream:
        """A stream that `work` fills. Raises ValueError for a model of another family."""
        if model.api != self.family:
            raise ValueError(f"{model.ref} speaks {model.api}, not {self.family}")
        stream = Stream(Assistant((), self.clock.now_ms(), self.family, model.provider, model.id))
        stream.start(self.spawn, lambda: work(stream), f"model {model.ref}")
        return stream
