"""What text from outside a turn has read: told by its session's history, which is read on as it grows."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any, Final

from garra.config.sections import Config
from garra.core import outside, taint
from garra.core.messages import Assistant, Message, ToolResult, User
from garra.core.patterns import later
from garra.core.taint import CLEAN, ROW, Marks
from garra.core.value import frozen, replace
from garra.domains.exec.supervisor import Commands
from garra.domains.sessions.session import Session
from garra.domains.sessions.store import Sessions
from garra.runs.drive import KEY, RECENT, Transcript
from garra.runs.run import Run
from garra.sdk.tool import ToolContext

log = logging.getLogger(__name__)


class Reading:
    """The marks of one history from message `start` on. What was read once is not read again."""

    __slots__ = ("_last", "_marks", "_seen", "_start")

    def __init__(self, start: int = 0) -> None:
        self._start = self._seen = start
        self._last: Message | None = None
        self._marks = CLEAN

    def on(self, messages: tuple[Message, ...]) -> Marks:
        """The marks of `messages`: the same as before and more, or, where the history was changed, all anew."""
        if self._last is not None and (len(messages) < self._seen or messages[self._seen - 1] is not self._last):
            self._seen, self._last, self._marks = 0, None, CLEAN
        for message in messages[self._seen :]:
            if taint.META in message.meta:
                self._marks = taint.add(self._marks, taint.of(message.meta))
        self._seen = len(messages)
        self._last = messages[-1] if messages else None
        return self._marks


@frozen
class View:
    """One run's view of its history. `mode` is how long a mark holds."""

    transcript: Transcript
    reading: Reading
    mode: taint.Mode

    def now(self) -> Marks:
        """What the run has read by now."""
        return CLEAN if self.mode == "off" else self.reading.on(self.transcript.messages())

    def seen(self, address: str) -> bool:
        """Whether the owner wrote an address, or it came from outside before the model had it in its own words."""
        wanted, own = outside.forms(address), False
        for each in self.transcript.messages():
            if isinstance(each, Assistant):
                own = own or any(form in text for form in wanted for text in _spoken(each))
            elif taint.META in each.meta or isinstance(each, User):
                theirs = taint.META in each.meta
                if not (own and theirs) and any(_stands(each.text, form) for form in wanted):
                    return True
        return False


class Readings:
    """The readings of the open transcripts; one is forgotten with its transcript."""

    def __init__(self) -> None:
        self._kept: weakref.WeakKeyDictionary[object, Reading] = weakref.WeakKeyDictionary()

    def of(self, run: Run, transcript: Transcript, mode: taint.Mode) -> View:
        """The marks of a run whose prompts are stored."""
        if mode == "turn":
            return View(transcript, Reading(_begin(run, transcript.messages())), mode)
        reading = self._kept.get(transcript)
        if reading is None:
            reading = self._kept[transcript] = Reading()
        return View(transcript, reading, mode)


def _begin(run: Run, messages: tuple[Message, ...]) -> int:
    """Where a run's own words begin; the very beginning where they are not among the newest."""
    own = {each.prompt.meta.get(KEY) for each in (run, *run.joined)}
    first = max(0, len(messages) - RECENT)
    at = next((at for at in range(first, len(messages)) if messages[at].meta.get(KEY) in own), None)
    return 0 if at is None else at


def _spoken(message: Assistant) -> tuple[str, ...]:
    """All that a model said, what it called tools with, too."""
    return (message.text, *(str(dict(call.arguments)) for call in message.calls))


_MORE: Final = later(r"[A-Za-z0-9_~%+=&?/:@-]|[.,;!](?=[A-Za-z0-9])")
"""What goes on with an address rather than ends it."""


def _stands(text: str, address: str) -> bool:
    """Whether an address stands in a text as a whole, and not as the beginning of a longer one."""
    at = text.find(address)
    while at >= 0:
        end = at + len(address)
        if not _MORE.match(text, end + (text.startswith("/", end) and not address.endswith("/"))):
            return True
        at = text.find(address, at + 1)
    return False


def held(context: ToolContext, view: View, config: Config) -> ToolContext:
    """`context` for a call that is made now: where the turn has read text from outside, it may do less unasked."""
    marks = view.now()
    if not marks.count:
        return context
    programs, may = context.exec, config.tools.taint.exec
    if isinstance(programs, Commands):
        programs = programs.guarded(
            taint.GUARDED,
            ask=may == "ask",
            why=(taint.does(("runs",)), *taint.because(marks)),
            covers=taint.covered(context.session_key, "exec", marks),
            listed=may == "listed" or (may == "confined" and taint.only_people(marks)),
        )
    anywhere = config.tools.taint.fetch == "any"
    return replace(context, marks=marks, exec=programs, seen=(lambda address: True) if anywhere else view.seen)


def row(marks: Marks) -> dict[str, Any] | None:
    """What a session's row says of `marks`; None where there are none."""
    if not marks.count:
        return None
    return {**taint.stored(marks.named), "more": marks.more, "texts": marks.count}


@frozen
class Watch:
    """What one run has read, on the way between its loop and its tools."""

    run: Run
    view: View
    sessions: Sessions
    config: Callable[[], Config]

    def context(self, context: ToolContext) -> ToolContext:
        """`context` for a call that is made now."""
        return held(context, self.view, self.config())

    async def begin(self, session: Session) -> None:
        """The session's row tells what its history holds."""
        await self._note(session, self.view.now())

    async def heard(self, result: ToolResult) -> None:
        """A tool has answered; what it brought is told in the log and in the session's row."""
        found = taint.of(result.meta)
        if not found or self.view.mode == "off":
            return
        run, marks = self.run, taint.add(self.view.now(), found)
        log.info("%s in %s read text from outside: %s", run.run_id, run.session_key, taint.brief(marks))
        session = await self.sessions.get(run.session_key)
        if session is not None:
            await self._note(session, marks)

    async def _note(self, session: Session, marks: Marks) -> None:
        told = row(marks)
        if session.extra.get(ROW) != told:
            await self.sessions.record(session.key, extra={ROW: told})
