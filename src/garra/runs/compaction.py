"""Keeps histories within their models' windows: before a call, after one that was too large, and when a person asks.

`core/compaction` decides; here it is carried out. Nothing is taken from a transcript: one line is added, and only when
the summary is there. Whatever stops before that line leaves the conversation as it was.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from garra.agent.cancel import Cancel
from garra.config.sections import Config
from garra.config.sections.agents import Compaction
from garra.core import compaction, summary, taint, thinking
from garra.core.blots import Blots
from garra.core.compaction import FLOOR, KEEP, History, Measure, Plan, Room, Steps
from garra.core.errors import Failure, FailureKind, UserError
from garra.core.events import Compacting, Noticed, RunBody
from garra.core.messages import Message
from garra.core.transcript import CLIPPED, Entry, Shown
from garra.core.value import frozen
from garra.runs.purse import Purse
from garra.runs.run import Run
from garra.runs.summariser import Summariser, Task
from garra.sdk.model import EventStream, Model, ModelRequest
from garra.sdk.ports import Clock

Messages = tuple[Message, ...]

SHORT = 4
"""A conversation of fewer messages ends without a silent turn."""
RESCUES = 2
"""So often one call is made again with a smaller history."""
GROWTH = 0.05
"""A history that is still too large must grow by so much of the window before it is tried again."""
TIGHT = 0.6
"""The share of the window that is aimed at where a history did not fit and nobody said by how much."""
DROPPED = (
    "The conversation had grown too large and could not be summed up: its oldest part is no longer shown to the model. "
    "It stands in the transcript."
)
SUMMED = "The conversation had grown too large: its older part was summed up."


class Transcript(Protocol):
    """As much of a transcript as is needed."""

    @property
    def since(self) -> int: ...

    def messages(self) -> Messages: ...

    async def read(self) -> Shown: ...

    async def note(self, kind: str, body: dict[str, Any]) -> Entry: ...


class Models(Protocol):
    """The models."""

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model: ...

    def stream(self, request: ModelRequest) -> EventStream: ...


class Rows(Protocol):
    """The sessions' rows."""

    async def get(self, key: str) -> Any: ...

    async def record(self, key: str, **fields: Any) -> Any: ...


@frozen
class Ports:
    """What making histories smaller needs from the rest of the house."""

    models: Models
    rows: Rows
    config: Callable[[], Config]
    clock: Clock
    blots: Callable[[], Blots]
    purse: Purse


@frozen
class Case:
    """One run's history. `models` are those it asks, in order; `fixed` are characters that go with every request.
    `flush` is the silent turn before anything goes (true: before the conversation ends), None where there is none;
    `owned`: a context engine sees to it. `emit` tells the watchers, `pruned` how much of it a model is sent in brief.
    """

    run: Run
    transcript: Transcript
    models: tuple[Model, ...]
    emit: Callable[[Run, RunBody], None]
    fixed: int = 0
    flush: Callable[[Cancel, bool], Coroutine[Any, Any, None]] | None = None
    owned: bool = False
    pruned: Callable[[Messages, Model], Steps] = lambda messages, model: ()


@frozen
class Outcome:
    """What was done: `step` is empty where nothing was. `before` and `after` are tokens."""

    step: str = ""
    before: int = 0
    after: int = 0


class Compactor:
    """One for all runs: what was learned of the models, and how large the open histories are."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.summariser = Summariser(ports.models, ports.clock, ports.blots, self.window)
        self._ratios: dict[str, float] = {}
        self._windows: dict[str, int] = {}
        self.measures: weakref.WeakKeyDictionary[Any, Measure] = weakref.WeakKeyDictionary()
        self._learned: weakref.WeakKeyDictionary[Measure, tuple[int, int]] = weakref.WeakKeyDictionary()

    def gauge(self, case: Case) -> Gauge:
        """What keeps the history of one run within bounds."""
        return Gauge(self, case)

    def window(self, model: Model) -> int:
        """How many tokens a model takes, as far as is known: what its provider said counts more than what was set."""
        set_ = self.ports.config().agents.defaults.context_tokens or model.context_window
        return min(model.context_window, set_, self._windows.get(model.ref, model.context_window))

    def shrink(self, model: Model, tokens: int) -> None:
        """A provider said how much it takes."""
        self._windows[model.ref] = tokens

    def settings(self) -> Compaction:
        return self.ports.config().agents.defaults.compaction

    def room(self, model: Model, fixed: int, window: int | None = None) -> Room:
        settings = self.settings()
        floor = FLOOR if settings.reserve_tokens_floor is None else settings.reserve_tokens_floor
        limits = compaction.limits(window or self.window(model), settings.reserve_tokens, floor)
        keep = KEEP if settings.keep_recent_tokens is None else settings.keep_recent_tokens
        ratio = self._ratios.get(model.ref, 1.0)
        return Room(limits, round(fixed / compaction.CHARS * ratio), ratio, keep)

    def measure(self, case: Case, model: Model) -> Measure:
        """The history's size by now; what a provider counted since is learned from."""
        transcript, fixed = case.transcript, case.fixed
        found = self.measures.setdefault(transcript, Measure())
        messages = transcript.messages()
        found.on(messages, transcript.since, case.pruned(messages, model))
        counted = found.counted(model.ref)
        if counted is not None and self._learned.get(found) != counted:
            self._learned[found] = counted
            size, tokens = counted
            old = self._ratios.get(model.ref)
            self._ratios[model.ref] = compaction.learned(old, size, fixed // compaction.CHARS, tokens)
        return found


class Gauge:
    """One run's history (`runs.drive.Fit`)."""

    def __init__(self, compactor: Compactor, case: Case) -> None:
        self._compactor, self._case = compactor, case
        self._model = case.models[0]
        self._base: tuple[Messages, int] | None = None
        self._given = 0
        self._quiet = 0
        self._mute = False
        self._rescued = (0, 0)
        self._flushed = False

    async def before(self, messages: Messages) -> Messages:
        """`messages`, or what is shown of them since they were made smaller; they are, where they are too large."""
        settings = self._compactor.settings()
        self._given = len(messages)
        if not self._case.owned:
            measure = self._measured()
            room = self._room()
            tokens = measure.tokens(room, self._model.ref)
            await self._flush(tokens, measure.total, room)
            most = settings.max_active_transcript_bytes
            if (settings.enabled and tokens > max(room.limits.limit, self._quiet)) or 0 < most <= measure.total:
                await self._smaller("threshold", room, tokens)
        return self._view(messages)

    async def rescue(self, failure: Failure) -> Failure | None:
        """A history that did not fit is made smaller, and the model asked again: RESCUES times at the most."""
        case = self._case
        if failure.kind is not FailureKind.OVERFLOW or case.owned:
            return failure
        said = len(case.transcript.messages())
        times = self._rescued[1] + 1 if self._rescued[0] == said else 1
        model = next((each for each in case.models if each.id == failure.model), self._model)
        if times > RESCUES or case.run.cancel.is_set:
            return self._hopeless(failure)
        self._model = model
        room = self._learn(model, failure, times)
        tokens = max(self._measured().tokens(room, model.ref), room.limits.limit + 1)
        outcome = await self._smaller("overflow", room, tokens, brief=times > 1)
        self._rescued = (len(case.transcript.messages()), times)
        return None if outcome.step else self._hopeless(failure)

    async def manual(self, focus: str = "") -> Outcome:
        """A person asks for it: what is old is summed up, however small it is. Raises UserError where nothing is."""
        measure, room = self._measured(), self._room()
        tokens = measure.tokens(room, self._model.ref)
        keep = min(room.keep, max(1, room.tokens(measure.total) // 2))
        room = Room(room.limits, room.fixed, room.ratio, keep)
        shown = await self._case.transcript.read()
        plan = compaction.cut(self._history(shown, measure, tokens), room)
        if plan is None:
            raise UserError("There is nothing to sum up: the conversation is short.")
        await self._flush(room.limits.window, measure.total, room)
        self._tell("manual")
        outcome = Outcome("", tokens, tokens)
        try:
            outcome = await self._cut(plan, shown, room, "manual", focus=focus)
        finally:
            self._end("manual", outcome)
        if not outcome.step:
            why = "it was stopped" if self._case.run.cancel.is_set else "no model gave a summary that is shorter"
            raise UserError(f"The conversation was not summed up: {why}. It is as it was.")
        return outcome

    async def keep_last(self, count: int) -> int:
        """Show the model the last `count` messages and no others; how many these are."""
        shown = await self._case.transcript.read()
        rows = shown.rows
        starts = summary.starts([message for _, message in rows])
        at = next((index for index in range(max(0, len(rows) - count), len(rows)) if starts[index]), len(rows))
        if at <= int(shown.summed):
            return len(rows) - int(shown.summed)
        plan = Plan("drop", at, (), 0, 0)
        await self._store(plan, shown, summary.LEFT_OUT.format(count=at), "manual")
        return len(rows) - at

    def saving(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """The silent turn before the conversation ends; None where there is none to be."""
        case, settings = self._case, self._compactor.settings().memory_flush
        flush = case.flush
        if flush is None or not settings.enabled or len(case.transcript.messages()) < SHORT:
            return None
        return lambda: flush(case.run.cancel, True)

    def _view(self, messages: Messages) -> Messages:
        if self._base is None:
            return messages
        base, known = self._base
        return (*base, *messages[known:])

    def _measured(self) -> Measure:
        return self._compactor.measure(self._case, self._model)

    def _room(self, window: int | None = None) -> Room:
        return self._compactor.room(self._model, self._case.fixed, window)

    def _learn(self, model: Model, failure: Failure, times: int) -> Room:
        """The room there really is, after a provider refused what we thought to fit."""
        window = self._compactor.window(model)
        told = compaction.stated(failure.message, window)
        if told is not None:
            self._compactor.shrink(model, told)
            window = told
        else:
            window = min(window, self._measured().tokens(self._room(), model.ref))
        return self._room(window if told is not None and times == 1 else max(1, int(window * TIGHT)))

    def _history(self, shown: Shown, measure: Measure, tokens: int) -> History:
        return History([message for _, message in shown.rows], measure.sizes, tokens, int(shown.summed))

    async def _smaller(self, why: str, room: Room, tokens: int, *, brief: bool = False) -> Outcome:
        """Down the ladder until it fits. `brief`: without a summary."""
        shown, measure = await self._case.transcript.read(), self._measured()
        history = self._history(shown, measure, tokens)
        self._tell(why)
        outcome = Outcome("", tokens, tokens)
        try:
            outcome = await self._ladder(history, shown, room, why, brief=brief)
        finally:
            self._end(why, outcome)
        self._quiet = outcome.after + int(room.limits.window * GROWTH)
        if outcome.step:
            await self._case.transcript.read()
            self._base = (self._case.transcript.messages(), self._given)
            self._notify(outcome)
        return outcome

    async def _ladder(self, history: History, shown: Shown, room: Room, why: str, *, brief: bool) -> Outcome:
        if (plan := compaction.trim(history, room)) is not None:
            return await self._store(plan, shown, "", why)
        if not (brief or self._mute) and (plan := compaction.cut(history, room)) is not None:
            outcome = await self._cut(plan, shown, room, why)
            if outcome.step or self._case.run.cancel.is_set:
                return outcome
            self._mute = True
        if (plan := compaction.squeeze(history, room)) is not None:
            return await self._store(plan, shown, "", why)
        if (plan := compaction.drop(history, room)) is not None:
            before = shown.rows[0][1].text if shown.summed else ""
            return await self._store(plan, shown, summary.note(plan.at - int(shown.summed), before, room), why)
        return Outcome("", history.before, history.before)

    async def _cut(self, plan: Plan, shown: Shown, room: Room, why: str, *, focus: str = "") -> Outcome:
        """Sum up and store; nothing is stored where there is no summary, or it would free too little."""
        text = await self._summary(plan, shown, room, focus)
        after = plan.after + room.tokens(compaction.weight(text))
        most = room.fixed + room.free if why != "manual" else plan.before
        if not text or self._case.run.cancel.is_set or not compaction.enough(plan.before, after, most):
            return Outcome("", plan.before, plan.before)
        return await self._store(plan, shown, summary.summed(text), why)

    async def _summary(self, plan: Plan, shown: Shown, room: Room, focus: str) -> str:
        case, settings, ports = self._case, self._compactor.settings(), self._compactor.ports
        if await ports.purse.may(case.run) is not None:
            return ""
        told = int(shown.summed)
        old = [shown.rows[at][1] for at in range(told, plan.at) if at not in plan.also]
        sizes = list(map(compaction.chars, old))
        task = Task(
            old, sizes, room, self._summarisers(settings), shown.rows[0][1].text if told else "", focus,
            settings.timeout_seconds, thinking.level(settings.thinking_level) or "low", case.run.session_id,
            ports.purse.payer(case.run),
        )  # fmt: skip
        return await self._compactor.summariser.sum_up(task, case.run.cancel)

    def _summarisers(self, settings: Compaction) -> Sequence[Model]:
        """The session's models, or the one that is set for this and no other."""
        if not settings.model:
            return self._case.models
        try:
            return (self._compactor.ports.models.resolve(settings.model, self._case.run.agent_id),)
        except UserError:
            return self._case.models

    async def _store(self, plan: Plan, shown: Shown, text: str, why: str) -> Outcome:
        """The one line that makes the history smaller; nothing where it was changed meanwhile."""
        case = self._case
        ids = [id_ for id_, _ in (await case.transcript.read()).rows]
        if ids[: len(shown.rows)] != [id_ for id_, _ in shown.rows]:
            return Outcome("", plan.before, plan.before)
        clipped = [[ids[end - 1], most] for end, most in plan.spans if end > plan.at]
        if plan.step == "trim":
            await case.transcript.note("custom", {"customType": CLIPPED.decode(), "data": {"clipped": clipped}})
            return Outcome("trim", plan.before, plan.after)
        marks = [mark for _, message in shown.rows[: plan.at] for mark in taint.of(message.meta)]
        body: dict[str, Any] = {
            "summary": text,
            "firstKeptEntryId": ids[plan.at] if plan.at < len(ids) else "",
            "tokensBefore": plan.before,
            "trigger": why,
            **({"alsoKeptEntryIds": [ids[at] for at in plan.also]} if plan.also else {}),
            **({"clipped": clipped} if clipped else {}),
            **taint.stored(marks),
        }
        await case.transcript.note("compaction", body)
        await self._count()
        return Outcome(plan.step, plan.before, plan.after + compaction.weight(text) // compaction.CHARS)

    async def _count(self) -> None:
        rows, key = self._compactor.ports.rows, self._case.run.session_key
        session = await rows.get(key)
        if session is not None:
            count = session.extra.get("compactionCount", 0)
            more = {"compactionCount": count + 1 if isinstance(count, int) else 1}
            await rows.record(key, totals=None, extra={**more, "lastCompactedAt": self._compactor.ports.clock.now_ms()})

    async def _flush(self, tokens: int, size: int, room: Room) -> None:
        """The silent turn in which the agent saves what should last; once for each time the history is cut."""
        case, settings = self._case, self._compactor.settings().memory_flush
        if case.flush is None or self._flushed or not settings.enabled:
            return
        near = tokens > room.limits.limit - settings.soft_threshold_tokens
        if near or 0 < settings.force_flush_transcript_bytes <= size:
            self._flushed = True
            await case.flush(case.run.cancel, False)

    def _tell(self, why: str) -> None:
        self._case.emit(self._case.run, Compacting("start", why))

    def _end(self, why: str, outcome: Outcome) -> None:
        body = Compacting("end", why, outcome.step, outcome.before, outcome.after)
        self._case.emit(self._case.run, body)

    def _notify(self, outcome: Outcome) -> None:
        """Where something is lost the person is told; of a summary, where that is wanted."""
        line = DROPPED if outcome.step == "drop" else SUMMED if self._compactor.settings().notify_user else ""
        if line and outcome.step != "trim" and line not in self._case.run.notices:
            self._case.run.notices.append(line)
            self._case.emit(self._case.run, Noticed(line))

    def _hopeless(self, failure: Failure) -> Failure:
        line = f"{failure.message}. It did not fit either after it was made smaller; /new begins another conversation."
        return Failure(failure.kind, line, failure.status, None, failure.provider, failure.model)
