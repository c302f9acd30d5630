"""What text from outside a turn has read: told by its session's history, which is read on as it grows."""

from __future__ import annotations

import logging
import weakref
from dataclasses import replace
from typing import Any, Protocol

from garra.config.sections import Config
from garra.core import taint
from garra.core.messages import Message
from garra.core.taint import CLEAN, Mark, Marks
from garra.core.value import frozen
from garra.domains.exec.supervisor import Commands
from garra.domains.sessions.session import Session
from garra.domains.sessions.store import Sessions
from garra.runs.drive import RECENT, Transcript
from garra.runs.run import Run
from garra.sdk.tool import ToolContext

log = logging.getLogger(__name__)

ROW: str = "taint"
"""Under which name a session's row tells of its marks."""


class Settings(Protocol):
    """As `tools.taint`."""

    @property
    def mode(self) -> taint.Mode: ...


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
class Turn:
    """One run's view of its history. `mode` is how long a mark holds."""

    transcript: Transcript
    reading: Reading
    mode: taint.Mode

    def now(self) -> Marks:
        """What the run has read by now."""
        return CLEAN if self.mode == "off" else self.reading.on(self.transcript.messages())


class Readings:
    """The readings of the open transcripts; one is forgotten with its transcript."""

    def __init__(self) -> None:
        self._kept: weakref.WeakKeyDictionary[object, Reading] = weakref.WeakKeyDictionary()

    def of(self, run: Run, transcript: Transcript, mode: taint.Mode) -> Turn:
        """The marks of a run whose prompts are stored."""
        if mode == "turn":
            return Turn(transcript, Reading(_begin(run, transcript.messages())), mode)
        reading = self._kept.get(transcript)
        if reading is None:
            reading = self._kept[transcript] = Reading()
        return Turn(transcript, reading, mode)


def _begin(run: Run, messages: tuple[Message, ...]) -> int:
    """Where a run's own words begin; the very beginning where they are not among the newest."""
    own = {each.prompt.meta.get("idempotencyKey") for each in (run, *run.joined)}
    first = max(0, len(messages) - RECENT)
    at = next((at for at in range(first, len(messages)) if messages[at].meta.get("idempotencyKey") in own), None)
    return 0 if at is None else at


def mode(config: Config) -> taint.Mode:
    return config.tools.taint.mode


def held(context: ToolContext, marks: Marks, config: Config) -> ToolContext:
    """`context` for a call of a turn that carries `marks`: what its commands may do unasked is less."""
    if not marks.count:
        return context
    programs = context.exec
    if isinstance(programs, Commands):
        programs = programs.guarded(taint.GUARDED, ask=config.tools.taint.exec == "ask")
    return replace(context, marks=marks, exec=programs)


def row(marks: Marks) -> dict[str, Any] | None:
    """What a session's row says of `marks`; None where there are none."""
    if not marks.count:
        return None
    return {**taint.stored(marks.named), "more": marks.more, "texts": marks.count}


class Ledger:
    """Tells of marks where people look: the session's row, and a line in the log."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def note(self, session: Session, marks: Marks) -> None:
        """The session's history has `marks` now."""
        told = row(marks)
        if session.extra.get(ROW) != told:
            await self._sessions.record(session.key, extra={ROW: told})

    async def add(self, run: Run, marks: Marks, found: tuple[Mark, ...]) -> None:
        """A tool of `run` has brought text with marks."""
        session = await self._sessions.get(run.session_key)
        log.info("%s of %s read text from outside: %s", run.run_id, run.session_key, ", ".join(map(taint.named, found)))
        if session is not None:
            await self.note(session, taint.add(marks, found))
