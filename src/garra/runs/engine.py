"""The context engine in a run: asked before each call of a model, what it adds is said behind the history."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from garra.core import budget, compaction, outside
from garra.core.blots import Blots
from garra.core.compaction import CHARS
from garra.core.errors import Failure, FailureKind
from garra.core.messages import Message, User
from garra.core.taint import Mark
from garra.domains.context.host import Seat
from garra.domains.sessions.transcript import Transcript
from garra.runs.asking import Asking, Said
from garra.runs.drive import Fit
from garra.runs.pages import StoredPages
from garra.runs.run import Run
from garra.sdk.context import Addition, Asked, Budget, Chat
from garra.sdk.model import Model, ToolSpec

Messages = tuple[Message, ...]


async def opened(seat: Seat, run: Run, transcript: Transcript, *, model: Model, blots: Blots) -> Assembly:
    """The engine of a run, which knows the conversation now."""
    assembly = Assembly(seat, run, transcript, model=model, blots=blots)
    await assembly.begin()
    return assembly


def chat_of(run: Run) -> Chat:
    """The conversation of a run, as an engine is told of it. The owner's memory is for his own turns, where nobody else
    reads along.
    """
    place, alone = run.turn.place, f"key:{run.session_key}"
    if place is None:
        kind = "explicit" if ":explicit:" in run.session_key else "direct"
        owner = "" if run.turn.origin in ("local", "operator") else alone
        return Chat(run.session_key, run.session_id, run.agent_id, kind, "", owner)
    if place.group:
        return Chat(run.session_key, run.session_id, run.agent_id, "group", place.chat, alone)
    who = "" if place.owner else f"{place.channel}:{place.account}:{place.sender}"
    return Chat(run.session_key, run.session_id, run.agent_id, "direct", place.chat or place.sender, who)


class Assembly:
    """`runs.drive.Fit` with an engine in front of `inner`, which keeps the history within the window."""

    def __init__(self, seat: Seat, run: Run, transcript: Transcript, *, model: Model, blots: Blots) -> None:
        self._seat, self._run, self._transcript, self._model, self._blots = seat, run, transcript, model, blots
        self._chat = chat_of(run)
        self._pages = StoredPages(transcript)
        self._ask: Asking | None = None
        self._inner: Fit | None = None
        self._fixed = self._calls = 0
        self._compacted = False

    @property
    def owns_compaction(self) -> bool:
        return self._seat.owns_compaction

    @property
    def inner(self) -> Fit | None:
        """What keeps the history within the window where the engine does not."""
        return self._inner

    async def begin(self) -> None:
        """Before the turn's history is read: the engine may put it in order, once it knows it."""
        await self._seat.met(self._chat, self._transcript.messages())
        await self._seat.maintain(self._chat, self._pages)

    def ahead(self, ask: Asking, said: Said, inner: Fit | None) -> Fit:
        """In front of `ask`, which says `said` with every call, and of `inner`."""
        specs = said.offered[self._model.ref]
        self._fixed = len(said.system) + len(said.tail) + sum(map(_size, specs))
        self._ask, self._inner = ask, inner
        return self

    async def before(self, messages: Messages) -> Messages:
        if self._inner is not None:
            messages = await self._inner.before(messages)
        if self._seat.aside:
            self._say("")
            return messages
        if self._compacted:
            messages = self._transcript.messages()
        await self._seat.met(self._chat, messages)
        got = await self._seat.assemble(self._chat, self._asked(messages))
        self._calls += 1
        self._add(got.additions)
        return got.messages

    async def rescue(self, failure: Failure) -> Failure | None:
        if failure.kind is FailureKind.OVERFLOW and not self._compacted and await self.compact():
            return None
        return failure if self._inner is None else await self._inner.rescue(failure)

    async def compact(self) -> bool:
        """Whether the engine made the history smaller."""
        transcript = self._transcript
        done = await self._seat.compact(self._chat, self._asked(transcript.messages()), self._pages)
        self._compacted = done is not None and done.compacted
        return self._compacted

    def _asked(self, messages: Messages) -> Asked:
        model, turn = self._model, self._run.turn
        room = compaction.Room(compaction.limits(model.context_window), self._fixed // CHARS)
        added = budget.room(model.context_window)
        said = next((message.text for message in reversed(messages) if isinstance(message, User)), "")
        return Asked(
            messages,
            model.ref,
            Budget(model.context_window, max(1, room.free - added), added),
            said,
            interactive=turn.origin in ("operator", "channel", "local"),
            first=self._calls == 0,
        )

    def _add(self, additions: Iterable[Addition]) -> None:
        """What is said behind the history, and which of it came from outside."""
        each = tuple(additions)
        run, blots = self._run, self._blots
        texts = budget.share((blots.text(one.text) for one in each), budget.room(self._model.context_window))
        shown = [_section(one, text) for one, text in zip(each, texts, strict=True) if text]
        self._say("\n\n".join(shown))
        new: dict[Mark, None] = dict.fromkeys(
            mark for one, text in zip(each, texts, strict=True) if text for mark in one.marks
        )
        run.heard = (*run.heard, *(mark for mark in new if mark not in run.heard))

    def _say(self, text: str) -> None:
        if self._ask is not None:
            self._ask.added = text


def _size(spec: ToolSpec) -> int:
    return len(spec.name) + len(spec.description) + len(msgspec.json.encode(dict(spec.parameters)))


def _section(addition: Addition, text: str) -> str:
    head = f"## {outside.name(addition.name)}\n"
    if addition.marks or addition.source:
        return head + outside.wrap(text, next(iter(addition.marks), Mark("memory", addition.source)))
    return head + outside.untokened(text)
