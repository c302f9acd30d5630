"""The agent loop: a model answers, its tools run, until it asks for none; then whoever waits is served.

It knows no vendor, no file, no chat. Everything is handed in with `Loop`; everything that happens is emitted as an
`AgentEvent`. A message is stored before its `MessageEnded` is emitted and before anything follows from it, so that a
crash at any point leaves a history the next request can be built from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import NoReturn

from garra.agent.calls import Batch, Emit, Tools, failed
from garra.agent.cancel import Cancel
from garra.core import repeats, reply, turnlimits
from garra.core.errors import Failure, FailureKind
from garra.core.events import (
    AgentEnded,
    AgentStarted,
    CallDelta,
    Done,
    Failed,
    MessageEnded,
    MessageStarted,
    MessageUpdated,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnStarted,
)
from garra.core.messages import Assistant, Message, Text, ToolCall, ToolResult, User
from garra.core.value import frozen, replace
from garra.sdk.model import EventStream
from garra.sdk.ports import Clock, Spawn

Messages = tuple[Message, ...]

NUDGE = "[Your last answer was empty. Answer now, in words.]"


async def _same(messages: Messages) -> Messages:
    return messages


async def _forget(_: Message) -> None:
    return None


async def _may() -> Failure | None:
    return None


async def _lost(failure: Failure) -> Failure | None:
    return failure


def _none() -> Sequence[User]:
    return ()


async def _nobody() -> Sequence[User]:
    return ()


@frozen
class Loop:
    """Everything one run of the loop needs.

    `history` is what was said before, already stored; `prompts` are stored by the loop. `stream` starts one model call
    and returns at once; it builds the vendor's request, valid for its target, and finds the key, each time.
    `transform` may change what the model sees, never what is stored; `rescue` hears of an answer that failed before a
    word of it came, and gives None where the model is to be asked again, else why the run ends. `store` returns when
    the message is on disk. `steering` gives (and forgets) what the model must see before its next answer; `follow_up`
    what waits until it
    would stop. `rests`: a tool said that the model is not asked again, unless `steering` has something.
    `may_be_empty`: an empty answer is a fine end (the words left by another way, or silence is allowed). `may` gives,
    before each call to a model, the failure that ends the run instead; `limits` and `guard` end it too.
    """

    history: Messages
    stream: Callable[[Messages], EventStream]
    clock: Clock
    spawn: Spawn
    prompts: tuple[User, ...] = ()
    tools: Tools = field(default_factory=Tools)
    store: Callable[[Message], Awaitable[None]] = _forget
    transform: Callable[[Messages], Awaitable[Messages]] = _same
    steering: Callable[[], Awaitable[Sequence[User]]] = _nobody
    follow_up: Callable[[], Sequence[User]] = _none
    steered: Callable[[], bool] = lambda: False
    rests: Callable[[], bool] = lambda: False
    cancel: Cancel = field(default_factory=Cancel)
    may_be_empty: Callable[[], bool] = lambda: False
    may: Callable[[], Awaitable[Failure | None]] = _may
    rescue: Callable[[Failure], Awaitable[Failure | None]] = _lost
    limits: turnlimits.Limits = turnlimits.Limits()
    guard: repeats.Settings = repeats.USUAL


async def run(loop: Loop, emit: Emit) -> AgentEnded:
    """Run to the end and give back the last event, which was also emitted.

    Never raises for a model's or a tool's faults; what `store` raises goes through. `emit` must not block.
    """
    return await _Running(loop, emit).run()


class _End(Exception):
    """Inside only: the run ends here, for `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class _Running:
    """One run of the loop."""

    def __init__(self, loop: Loop, emit: Emit) -> None:
        self._loop, self._emit = loop, emit
        self._history = list(loop.history)
        self._new: list[Message] = []
        self._repeats = repeats.State()
        self._done = turnlimits.State()
        self._nudged = False

    async def run(self) -> AgentEnded:
        self._emit(AgentStarted())
        failure: Failure | None = None
        try:
            await self._until_done()
        except _End as end:
            failure = end.failure
        ended = AgentEnded(tuple(self._new), failure)
        self._emit(ended)
        return ended

    async def _until_done(self) -> None:
        pending: Sequence[User] = (*self._loop.prompts, *await self._loop.steering())
        while True:
            more = True
            while more or pending:
                more = await self._turn(pending)
                pending = () if self._loop.cancel.is_set else await self._loop.steering()
            pending = () if self._loop.cancel.is_set else self._loop.follow_up()
            if not pending:
                return

    async def _turn(self, pending: Sequence[User]) -> bool:
        """One model answer and its tools; True when the model must be asked again."""
        self._emit(TurnStarted())
        for message in pending:
            await self._say(message)
        if pending:
            self._repeats, self._done = repeats.State(), turnlimits.heard(self._done)
        answer = await self._answer()
        results = await self._call(answer)
        await self._ask_where_refused(results)
        again = await self._nudge(answer)
        self._emit(TurnEnded(answer, results))
        return (bool(results) and not self._loop.rests()) or again

    async def _say(self, message: Message) -> None:
        """A whole message that is not streamed: a user's, a tool's, ours."""
        self._emit(MessageStarted(message))
        await self._keep(message)

    async def _keep(self, message: Message) -> None:
        await self._loop.store(message)
        self._history.append(message)
        self._new.append(message)
        self._emit(MessageEnded(message))

    async def _answer(self) -> Assistant:
        """The model's answer, stored. Ends the run when it failed."""
        if self._loop.cancel.is_set:
            await self._stop()
        self._done, line = turnlimits.ask(self._done, self._loop.limits)
        if line:
            await self._give_up(FailureKind.TOOL_LOOP, line)
        if (barred := await self._loop.may()) is not None:
            await self._give_up(barred.kind, barred.message)
        self._emit(MessageStarted(Assistant((), self._loop.clock.now_ms())))
        while (whole := await self._asked()) is None:
            pass
        return whole

    async def _asked(self) -> Assistant | None:
        """One call to the model; None where it is to be made again."""
        request = await self._loop.transform(tuple(self._history))
        if self._loop.cancel.is_set:
            await self._break(Assistant((), self._loop.clock.now_ms()), self._stopped)
        if self._nudged:
            request = (*request, User((Text(NUDGE),), self._loop.clock.now_ms()))
        stream = self._loop.stream(request)
        detach = self._loop.cancel.attach(stream.abort)
        try:
            return await self._receive(stream)
        finally:
            detach()

    async def _receive(self, stream: EventStream) -> Assistant | None:
        words = _Words(self._emit)
        end: Done | Failed | None = None
        spoke = False
        async for event in stream:
            if isinstance(event, Done | Failed):
                end = event
            else:
                spoke = True
                words.add(event)
        words.finish()
        assert end is not None, "a stream ends with Done or Failed"
        if isinstance(end, Failed):
            await self._failed(end, spoke=spoke)
            return None
        whole = reply.settled(end.message)
        await self._keep(whole)
        return whole

    async def _failed(self, end: Failed, *, spoke: bool) -> None:
        """The answer failed: ends the run, but where it was rescued."""
        failure: Failure | None = end.failure
        if not spoke and not self._loop.cancel.is_set:
            failure = await self._loop.rescue(end.failure)
        if failure is not None:
            await self._break(end.message, failure)

    async def _call(self, answer: Assistant) -> tuple[ToolResult, ...]:
        """Run what the answer asks for; one result for each call, stored."""
        if not answer.calls:
            return ()
        if answer.stop == "length":
            return await self._refuse(answer, "Not run: the answer was cut at its length limit.")
        why, line = self._circle(answer)
        if not line:
            self._done, line = turnlimits.call(self._done, self._loop.limits, len(answer.calls))
            why = "Not run: the run has made as many calls as it may."
        if line:
            await self._give_up(FailureKind.TOOL_LOOP, line, await self._refuse(answer, why))
        loop = self._loop
        calls = iter(answer.calls)

        async def keep(result: ToolResult) -> None:
            await self._say(self._noted(next(calls), result))

        batch = Batch(answer.calls, loop.tools, loop.cancel, self._emit, loop.clock, loop.spawn, self._skip)
        return await batch.settle(keep)

    def _circle(self, answer: Assistant) -> tuple[str, str]:
        """(what the model is told, what the person is) where a call was repeated too often; else empty."""
        for call in answer.calls:
            known = self._knows(call)
            if repeats.may(self._repeats, call, self._loop.guard, known=known):
                continue
            if not known:
                return "Not run: there is no such tool.", "Stopped: the model went on calling tools that do not exist."
            line = f"Stopped: the model repeated the same {call.name} call without getting further."
            return "Not run: this call was repeated too often.", line
        return "", ""

    def _knows(self, call: ToolCall) -> bool:
        return call.name in self._loop.tools.modes

    async def _ask_where_refused(self, results: tuple[ToolResult, ...]) -> None:
        """After so many refusals it is for a person to say how to go on."""
        self._done = turnlimits.ended(self._done, results)
        if self._loop.cancel.is_set:
            return
        if line := turnlimits.stuck(self._done, self._loop.limits, results):
            await self._give_up(FailureKind.TOOL_LOOP, line, results)

    def _skip(self) -> str:
        return "Not run: a new message came first." if self._loop.steered() else ""

    def _noted(self, call: ToolCall, result: ToolResult) -> ToolResult:
        guard, known = self._loop.guard, self._knows(call)
        self._repeats, named = repeats.step(self._repeats, call, result, guard, known=known)
        if not named or self._loop.cancel.is_set:
            return result
        return replace(result, content=(*result.content, Text(f"\n{repeats.note(self._repeats, call)}")))

    async def _refuse(self, answer: Assistant, why: str) -> tuple[ToolResult, ...]:
        results = tuple(failed(call, self._loop.clock.now_ms(), why) for call in answer.calls)
        for result in results:
            await self._say(result)
        return results

    async def _nudge(self, answer: Assistant) -> bool:
        """True when an empty answer is to be asked for once more. Ends the run when that was in vain."""
        if answer.text.strip() or answer.calls or self._loop.may_be_empty():
            self._nudged = False
        elif self._nudged:
            cut = " within its output limit" if answer.stop == "length" else ""
            line = f"The model gave no answer{cut}. Try again, or choose another model."
            await self._give_up(FailureKind.EMPTY, line)
        else:
            self._nudged = True
        return self._nudged

    async def _break(self, message: Assistant, failure: Failure) -> NoReturn:
        """The model's answer failed or was stopped: keep what is whole of it."""
        kept = reply.broken(message)
        if self._loop.cancel.is_set:
            failure = self._stopped
            kept = replace(kept, stop="aborted", error=failure.message)
        elif kept.stop not in {"error", "aborted"}:
            kept = replace(kept, stop="error", error=kept.error or failure.message)
        await self._keep(kept)
        self._emit(TurnEnded(kept, ()))
        raise _End(failure)

    @property
    def _stopped(self) -> Failure:
        return Failure(FailureKind.CANCELLED, f"Stopped ({self._loop.cancel.reason}).")

    async def _stop(self) -> NoReturn:
        await self._close(Assistant((), self._loop.clock.now_ms(), stop="aborted", error=self._stopped.message))
        raise _End(self._stopped)

    async def _give_up(self, kind: FailureKind, line: str, results: tuple[ToolResult, ...] = ()) -> NoReturn:
        await self._close(Assistant((), self._loop.clock.now_ms(), stop="error", error=line), results)
        raise _End(Failure(kind, line))

    async def _close(self, message: Assistant, results: tuple[ToolResult, ...] = ()) -> None:
        await self._say(message)
        self._emit(TurnEnded(message, results))


class _Words:
    """The deltas of one answer on their way out, thoughts in the text set apart."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._state = reply.State()
        self._index = 0
        self._before = ""

    def add(self, event: StreamEvent) -> None:
        if isinstance(event, TextDelta):
            if event.index != self._index:
                self.finish()
                self._before, self._state, self._index = self._text, reply.State(), event.index
            self._show(event.delta, last=False)
        elif isinstance(event, ThinkingDelta | CallDelta):
            self._emit(MessageUpdated(event, self._text))

    def finish(self) -> None:
        """Nothing more comes for this part: what was held back goes out."""
        self._show("", last=True)

    @property
    def _text(self) -> str:
        return self._before + self._state.shown

    def _show(self, delta: str, *, last: bool) -> None:
        self._state, shown = reply.step(self._state, delta, last=last)
        if shown.thought:
            self._emit(MessageUpdated(ThinkingDelta(self._index, shown.thought), self._text))
        if shown.text or shown.reset:
            self._emit(MessageUpdated(TextDelta(self._index, shown.text), self._text))
