"""Drives one run from its stored prompt to its end: the loop's events out, every message stored first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from garra.agent import loop
from garra.agent.calls import Tools
from garra.core import repeats, reply, resuming, taint, turnlimits
from garra.core.errors import Failure, FailureKind
from garra.core.events import (
    AgentEnded,
    AgentEvent,
    EntryStored,
    MessageEnded,
    ModelChosen,
    RunBody,
    RunEnded,
    RunPhase,
    ToolEnded,
)
from garra.core.messages import Assistant, Message, Text, User
from garra.core.transcript import Entry
from garra.core.value import frozen, replace
from garra.runs.chain import Chain, Leg, Ports
from garra.runs.lane import Lane
from garra.runs.purse import NO_PURSE, Purse
from garra.runs.run import Run
from garra.sdk.model import EventStream, Model
from garra.sdk.ports import Clock, Spawn
from garra.sdk.written import Rest

Messages = tuple[Message, ...]


class Transcript(Protocol):
    """As much of a transcript as a run needs."""

    def messages(self) -> Messages: ...

    async def append(self, message: Message) -> Entry: ...


class Fit(Protocol):
    """Keeps a history within its model's window."""

    async def before(self, messages: Messages) -> Messages:
        """What a request is made of, instead of `messages`, all that was said."""
        ...

    async def rescue(self, failure: Failure) -> Failure | None:
        """A call failed before a word of it came: None where it is to be made again, else why the run ends."""
        ...


@frozen
class Setup:
    """What one run works with. `ask` starts one call to one model with a history; `limit_s` 0 means no limit.
    `resting`: this model is better asked last. `fit` sees to it that the history fits.
    `rest` is what a turn of a long conversation awaits where others may go first.
    """

    transcript: Transcript
    models: tuple[Model, ...]
    ask: Callable[[Model, Messages], EventStream]
    tools: Tools
    limit_s: float = 0.0
    quiet: reply.Quiet = "never"
    limits: turnlimits.Limits = turnlimits.Limits()
    guard: repeats.Settings = repeats.USUAL
    resting: Callable[[Model], bool] = lambda _: False
    fit: Fit | None = None
    rest: Rest | None = None


async def same(message: User) -> User:
    return message


@frozen
class Driver:
    """`assemble` makes the setup of a run; it raises UserError for what cannot be run, with a line for the person.
    `smaller` sees to pictures in what is said meanwhile.
    """

    clock: Clock
    spawn: Spawn
    assemble: Callable[[Run], Awaitable[Setup]]
    emit: Callable[[Run, RunBody], None]
    purse: Purse = NO_PURSE
    smaller: Callable[[User], Awaitable[User]] = same

    async def drive(self, run: Run, lane: Lane, brief: str) -> RunEnded:
        """Run it to the end. Raises what `assemble` raises."""
        self.emit(run, RunPhase("preparing_workspace"))
        setup = await self.assemble(run)
        return await _Drive(self, run, lane, setup).run(brief)


class _Drive:
    """One run on its way."""

    def __init__(self, driver: Driver, run: Run, lane: Lane, setup: Setup) -> None:
        self._driver, self._run, self._lane, self._setup = driver, run, lane, setup
        self._offered: dict[int, Run] = {}
        self._kept: set[int] = set()
        self._chosen: Model | None = None

    async def run(self, brief: str) -> RunEnded:
        run, driver = self._run, self._driver
        driver.emit(run, RunPhase("preparing_context"))
        prompts = self._prompts(brief)
        self._kept = {id(prompt) for prompt in prompts if KEY in prompt.meta}
        history, prompts = _split(self._setup.transcript.messages(), prompts)
        work = loop.Loop(
            history,
            self._stream,
            driver.clock,
            driver.spawn,
            prompts=prompts,
            tools=self._setup.tools,
            store=self._store,
            steering=self._steering,
            steered=lambda: bool(run.steer),
            rests=lambda: run.rest is not None,
            cancel=run.cancel,
            may=lambda: driver.purse.may(run),
            limits=self._setup.limits,
            guard=self._setup.guard,
        )
        if (fit := self._setup.fit) is not None:
            work = replace(work, transform=fit.before, rescue=fit.rescue)
        driver.emit(run, RunPhase("starting_model"))
        self._lane.open(yes=True)
        try:
            async with _Limit(run, self._setup.limit_s):
                ended = await loop.run(work, self._event)
        finally:
            self._lane.open(yes=False)
        return self._ending(ended)

    def _prompts(self, brief: str) -> tuple[User, ...]:
        """The run's words, on disk already, and a note (not stored before) of what had no room."""
        words = tuple(each.prompt for each in (self._run, *self._run.joined))
        if not brief:
            return words
        return (*words, User((Text(brief),), self._driver.clock.now_ms(), taint.stored(self._run.left_out)))

    def _stream(self, messages: Messages) -> EventStream:
        setup, driver = self._setup, self._driver
        now = driver.clock.now_ms()

        def start(model: Model, leg: Leg) -> EventStream:
            self._run.trace.behind = leg.behind
            return setup.ask(model, resuming.continued(messages, leg.said, now))

        ports = Ports(start, driver.spawn, self._choose, self._run.trace.note, setup.resting)
        return Chain(setup.models, ports).stream(now)

    def _choose(self, model: Model) -> None:
        trace = self._run.trace
        trace.provider, trace.model, trace.context_window = model.provider, model.id, model.context_window
        if model is not self._chosen:
            self._chosen = model
            self._driver.emit(self._run, ModelChosen(model.provider, model.id))

    async def _store(self, message: Message) -> None:
        """Put a message on disk, before anything follows from it. The prompts are there already."""
        if id(message) in self._kept:
            return
        if self._setup.rest is not None:
            await self._setup.rest()
        if isinstance(message, Assistant):
            own = {"__openclaw": {"runId": self._run.run_id}, **taint.stored(self._run.heard)}
            message, self._run.heard = replace(message, meta={**message.meta, **own}), ()
        entry = await self._setup.transcript.append(message)
        self._driver.emit(self._run, EntryStored(entry.body))
        steered = self._offered.pop(id(message), None)
        if steered is not None and steered.state != "ended":
            if steered in self._run.steer:
                self._run.steer.remove(steered)
            self._run.joined.append(steered)
            steered.led_by = self._run.run_id
            steered.stored.set()
            self._lane.consumed([steered])

    async def _steering(self) -> Sequence[User]:
        for run in tuple(self._run.steer):
            if id(run.prompt) not in self._offered:
                run.prompt = await self._driver.smaller(run.prompt)
        waiting = [run for run in self._run.steer if id(run.prompt) not in self._offered]
        for run in waiting:
            self._offered[id(run.prompt)] = run
            self._run.rest = None
        return [run.prompt for run in waiting]

    def _event(self, event: AgentEvent) -> None:
        trace = self._run.trace
        match event:
            case MessageEnded(Assistant() as message):
                trace.answers.append(message)
                trace.usage = trace.usage + message.usage
                trace.last_usage = message.usage
                if len(self._setup.models) == 1:
                    trace.note(trace.provider, trace.model, _result(message))
            case ToolEnded(call, result) if not result.is_error:
                trace.tools.append(call.name)
            case _:
                pass
        self._driver.emit(self._run, event)

    def _ending(self, ended: AgentEnded) -> RunEnded:
        run = self._run
        last = run.trace.answers[-1] if run.trace.answers else None
        plain = RunEnded("ok", "", last, ended.failure, run.started_at, self._driver.clock.now_ms())
        if ended.failure is not None:
            return self._failed(plain, ended.failure)
        if run.rest is not None:
            return self._resting(plain, run.rest)
        match reply.answer(last.text if last else "", self._setup.quiet):
            case reply.Reply(text):
                return replace(plain, reply=text)
            case reply.Silence():
                return replace(plain, silent=True)
            case reply.Nothing():
                line = "The model gave no answer. Try again, or choose another model."
                return replace(plain, ending="error", reply=line, failure=Failure(FailureKind.EMPTY, line))

    def _resting(self, plain: RunEnded, shown: str) -> RunEnded:
        """It waits for its sub-agents: its own last words are said, else `shown`, else nothing."""
        said = reply.answer(plain.message.text if plain.message else "", "group")
        text = said.text if isinstance(said, reply.Reply) else shown
        return replace(plain, reply=text, silent=not text)

    def _failed(self, plain: RunEnded, failure: Failure) -> RunEnded:
        if failure.kind is not FailureKind.CANCELLED:
            return replace(plain, ending="error", reply=failure.message)
        if self._run.cancel.reason != _Limit.REASON:
            return replace(plain, ending="aborted")
        line = f"Stopped after {self._setup.limit_s:g} s, the limit for one run (agents.defaults.timeoutSeconds)."
        return replace(plain, ending="timeout", reply=line, failure=Failure(FailureKind.TIMEOUT, line))


KEY = "idempotencyKey"
"""Under which name a stored prompt has that of its run."""
RECENT = 64
"""How far back the prompts of a run are looked for: they were stored last, but for a run that is resumed."""


def _split(messages: Messages, prompts: tuple[User, ...]) -> tuple[Messages, tuple[User, ...]]:
    """(history, prompts) as the loop takes them: it adds the prompts behind the history itself.

    Where something follows the prompts already, an answer or what the run was handed meanwhile, it is resumed: all is
    history, in the order it was said, and nothing is left to say.
    """
    own = {prompt.meta[KEY] for prompt in prompts if KEY in prompt.meta}
    recent = messages[-RECENT:]
    begun = next((at for at, message in enumerate(recent) if message.meta.get(KEY) in own), None)
    if begun is not None and any(message.meta.get(KEY) not in own for message in recent[begun:]):
        return messages, tuple(prompt for prompt in prompts if KEY not in prompt.meta)
    return messages if begun is None else messages[: len(messages) - len(recent) + begun], prompts


def said(messages: Messages, prompt: User) -> bool:
    """Whether a run's prompt is in the history already."""
    key = prompt.meta[KEY]
    return any(message.meta.get(KEY) == key for message in messages[-RECENT:])


def _result(message: Assistant) -> str:
    return message.stop if message.stop in {"error", "aborted"} else "success"


class _Limit:
    """Stops a run when its time is up."""

    REASON = "timeout"

    def __init__(self, run: Run, limit_s: float) -> None:
        self._run, self._limit_s = run, limit_s
        self._alarm: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        if self._limit_s > 0:
            self._alarm = asyncio.get_running_loop().call_later(self._limit_s, self._run.cancel.set, self.REASON)

    async def __aexit__(self, *_: object) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
