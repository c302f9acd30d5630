"""From runs that were accepted to answers in the outbox. Each ends in a reply, a declared silence, or one line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from garra.core import reply
from garra.core.errors import GarraError, Unavailable
from garra.core.events import ModelChosen, RunEnded, RunEvent, ToolStarted
from garra.core.ids import RunId, SessionKey
from garra.core.messages import Assistant
from garra.core.value import frozen
from garra.domains.delivery.draft import Draft
from garra.runs.run import Run
from garra.turns.parts import Asked, Ports, Watched

log = logging.getLogger(__name__)

LONGEST_S: Final = 60.0
"""The longest wait between two tries to write to a disk that refuses."""

KEPT: Final = "kept"
"""The end of a turn that the next start goes on with."""


@dataclass(eq=False, slots=True)
class Going:
    """A turn on its way. `rows` are the inbox rows it answers, `before` what it had said before a restart."""

    run: Run
    rows: tuple[str, ...]
    asked: Asked
    watched: Watched
    before: tuple[str, ...] = ()
    covered: bool = False
    noted: set[str] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)


@frozen
class End:
    """How a turn ended, in a word, and what it said; empty where it was silent or failed."""

    why: str
    text: str = ""


class Answers:
    """All turns that have no answer yet."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._open: dict[RunId, Going] = {}
        self._ended_first: dict[SessionKey, list[Going]] = {}
        ports.runs.subscribe(self._heard)

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, run: Run, rows: Sequence[str], asked: Asked, before: Sequence[str] = ()) -> Going:
        """A run was accepted: from now on the chat sees that somebody is at work."""
        going = Going(run, tuple(rows), asked, self._ports.voice.watch(run, asked), tuple(before))
        self._open[run.run_id] = going
        if run.state == "queued":
            self._note(going, "queued", "")
        elif run.trace.model:
            self._note(going, "model", f"{run.trace.provider}/{run.trace.model}")
        return going

    def _heard(self, event: RunEvent) -> None:
        """What a run does belongs to the story of the messages it answers."""
        going = self._open.get(event.run_id)
        if going is None:
            return
        match event.body:
            case ModelChosen(provider, model):
                self._note(going, "model", f"{provider}/{model}")
            case ToolStarted(call):
                self._note(going, "tool", call.name)
            case RunEnded():
                self._ended(going, event.body)
            case _:
                pass

    def _ended(self, going: Going, ended: RunEnded) -> None:
        if "answered" not in going.noted:
            self._note(going, "answered", ended.ending if ended.failure is None else ended.failure.message)

    def _note(self, going: Going, station: str, detail: str) -> None:
        going.noted.add(station)
        self._ports.spawn(self._noted(going.rows, station, detail), "timeline")

    async def _noted(self, rows: Sequence[str], station: str, detail: str) -> None:
        """Write a station down; where that cannot be, the message goes its way without."""
        with suppress(GarraError):
            await self._ports.timeline.note_all(rows, station, detail)

    async def all(self, going: Sequence[Going]) -> str:
        """Wait for the ends and write what they say; the rows are done with the last. How the turn ended, in a word."""
        if len(going) == 1:
            return (await self._end(going[0], last=True)).why
        ends = await asyncio.gather(*map(self.one, going))
        return KEPT if any(each.why == KEPT for each in ends) else await self.close(going[0].rows)

    async def one(self, going: Going) -> End:
        """Wait for the end of one of several turns that answer the same rows, and write what it says."""
        return await self._end(going, last=False)

    async def close(self, rows: Sequence[str], why: str = "answered") -> str:
        """The last of several turns is answered: the rows are done."""
        await self._write((), rows, why)
        return why

    async def _end(self, going: Going, *, last: bool) -> End:
        try:
            ended = await going.run.wait()
            await self._in_turn(going)
            return await self._finish(going, ended, last=last)
        finally:
            self._open.pop(going.run.run_id, None)
            self._leave(going)
            going.over.set()

    async def _in_turn(self, going: Going) -> None:
        """Wait for the turns of this conversation that ended before: where the disk refuses, none overtakes another."""
        line = self._ended_first.setdefault(going.run.session_key, [])
        line.append(going)
        while line[0] is not going:
            await line[0].over.wait()

    def _leave(self, going: Going) -> None:
        line = self._ended_first.get(going.run.session_key, [])
        if going in line:
            line.remove(going)
            if not line:
                del self._ended_first[going.run.session_key]

    async def _finish(self, going: Going, ended: RunEnded, *, last: bool) -> End:
        run = going.run
        self._ended(going, ended)
        leader = self._open.get(run.led_by) if run.led_by else None
        if leader is not None:
            await leader.over.wait()
        if going.covered or unfinished(run, ended):
            await going.watched.end(())
            going.watched.finish(answered=False)
            return End("joined" if going.covered else KEPT)
        texts = (*going.before, *said(run, ended))
        joined = [found for each in run.joined if (found := self._open.get(each.run_id)) is not None]
        drafts = await going.watched.end(texts)
        rows = [row for each in (going, *joined) for row in each.rows]
        await self._write(drafts, rows if last else rows[len(going.rows) :], outcome(run, ended, texts))
        going.watched.finish(answered=bool(drafts))
        for each in joined:
            each.covered = True
        return End(outcome(run, ended, texts), "\n\n".join(texts) if ended.ending == "ok" else "")

    async def _write(self, drafts: Sequence[Draft], rows: Sequence[str], why: str) -> None:
        """All or nothing: a restart that found half of a turn's messages would make another turn of them."""
        outbox, first = self._ports.outbox, rows[0] if rows else None
        if drafts or rows:
            await self._surely(lambda: outbox.put(drafts, inbox_id=first, also=rows[1:], why=why))

    async def _surely(self, write: Callable[[], Awaitable[Any]]) -> None:
        """Write, and try again for as long as the disk refuses: an answer that was made is not lost."""
        wait_s = 1.0
        while True:
            try:
                await write()
            except Unavailable as error:
                log.warning("an answer waits for the disk: %s", error.message)
            else:
                return
            await self._ports.clock.sleep(wait_s)
            wait_s = min(LONGEST_S, wait_s * 2)


def unfinished(run: Run, ended: RunEnded) -> bool:
    """Whether only the process ended, not the turn."""
    return ended.ending == "aborted" and run.cancel.reason in ("", "shutdown")


def numbered(drafts: Sequence[Draft]) -> list[Draft]:
    """The messages of several answers of one run as they were written when the run ended: one row, counted through."""
    return [
        replace(draft, key=f"{draft.key.rpartition(':')[0]}:{number}", position=number)
        for number, draft in enumerate(drafts)
    ]


def said(run: Run, ended: RunEnded) -> tuple[str, ...]:
    """What a run says to its chat: each answer that it gave before it took further messages, then its last word."""
    last = ended.message if ended.ending == "ok" else None
    whole = (message for message in run.trace.answers if message.stop in ("stop", "length") and message is not last)
    return tuple(part for part in (*map(words, whole), ended.reply) if part)


def words(message: Assistant) -> str:
    """The visible words of an answer; empty for a declared silence."""
    match reply.answer(message.text, "group"):
        case reply.Reply(text):
            return text
        case _:
            return ""


def outcome(run: Run, ended: RunEnded, texts: Sequence[str]) -> str:
    """How a turn ended, in a word for its row."""
    match ended.ending:
        case "ok":
            return "answered" if texts else "silence"
        case "aborted":
            return "interrupted" if run.cancel.reason == "interrupt" else "stopped"
        case "timeout":
            return "timeout"
        case _:
            return "failed"
