"""WebChat, the gateway's own chat: what operators write is kept like any channel's message until it is answered.

It has no platform. A message is on disk before its sender is told that it began; a restart goes on with it; its story
is told like others'. Its answer is what the session's transcript holds, so nothing of it goes through the outbox.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any, Final, Protocol

from garra.core import taint, thinking
from garra.core.errors import GarraError
from garra.core.events import ModelChosen, RunEnded, RunEvent, ToolStarted
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.keys import agent_of
from garra.core.value import frozen, record
from garra.domains.delivery.accounts import WEBCHAT
from garra.domains.delivery.book import Passed
from garra.domains.delivery.inbox import InboxRow
from garra.runs.offspring import origin
from garra.runs.run import Run, Turn
from garra.sdk.channel import Address, Inbound, Media, Sender
from garra.sdk.ports import Clock, Spawn, Task
from garra.turns.answers import outcome, said, unfinished
from garra.turns.parts import Runs, Sessions
from garra.turns.recovery import Found, standing

LOST: Final = "A restart came before the pictures of your last message were stored. Please send it again."

STORY_S: Final = 1.0
"""How late the story of a message that is under way may be."""

Say = Callable[[SessionKey, str], Awaitable[Any]]
"""Puts a line of ours into a session, for all who watch it."""


class Book(Protocol):
    """As `domains.delivery.book`."""

    async def enter(self, event: Inbound, run_id: str, session_key: str) -> str: ...

    def now(self) -> int: ...

    async def note(self, rows: Sequence[str], stations: Sequence[Passed]) -> None: ...

    async def finish(self, rows: Sequence[str], stations: Sequence[Passed], why: str) -> None: ...


@frozen
class Ports:
    """What it works with."""

    book: Book
    runs: Runs
    sessions: Sessions
    clock: Clock
    spawn: Spawn
    warn: Callable[[str], object]


@record
class _Going:
    """A run and the messages it answers. `passed` are stations that are not written yet: most runs end before that."""

    run: Run
    rows: tuple[str, ...]
    noted: set[str] = field(default_factory=set)
    passed: list[Passed] = field(default_factory=list)
    alarm: Task | None = None


class WebChat:
    """All messages of operators that are not answered yet."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._open: dict[RunId, _Going] = {}
        self._resumed: set[RunId] = set()
        ports.runs.subscribe(self._heard)

    async def submit(self, turn: Turn, sender: Sender) -> Run:
        """Store the message, then start its run. Raises what either raises; a message whose run was refused is done."""
        row = await self._ports.book.enter(_event(turn, sender), turn.run_id, turn.session_key)
        try:
            run = await self._ports.runs.submit(self._apart(turn))
        except GarraError as error:
            await self._done((row,), f"refused: {error.message}")
            raise
        self._follow(run, (row,))
        return run

    async def resume(self, rows: Iterable[InboxRow], say: Say) -> None:
        """Go on with what an earlier process had taken, oldest first."""
        sessions: dict[str, dict[str, InboxRow]] = {}
        for row in rows:
            sessions.setdefault(row.session_key, {})[row.run_id] = row
        for key, found in sessions.items():
            await self._session(SessionKey(key), found, say)

    async def _session(self, key: SessionKey, rows: Mapping[str, InboxRow], say: Say) -> None:
        try:
            messages = (await self._ports.sessions.transcript(key)).messages()
        except GarraError as error:
            await self._done([row.id for row in rows.values()], f"failed: {error.message}")
            return
        found = standing(messages, key, list(rows))
        for each in found:
            joined = [rows[other.run_id].id for other in found if other.led_by == each.run_id]
            if each.led_by not in rows:
                await self._again(rows[each.run_id], each, joined, say)

    async def _again(self, row: InboxRow, found: Found, joined: Sequence[str], say: Say) -> None:
        """One run: its answer is there, or it goes on behind what it did."""
        event, every = row.event, (row.id, *joined)
        assert isinstance(event, Inbound)
        if found.over or found.led_by:
            await self._done(every, "answered" if found.over else "joined")
            return
        try:
            if event.media and not found.text:
                await say(found.key, LOST)
                await self._done(every, "failed: its pictures were not stored")
                return
            run = await self._ports.runs.submit(self._apart(_turn(row, event, found)))
        except GarraError as error:
            self._ports.warn(f"message {row.id} is not gone on with: {error.message}")
            await self._done(every, f"failed: {error.message}")
            return
        self._resumed.add(run.run_id)
        self._follow(run, every)

    def _apart(self, turn: Turn) -> Turn:
        """`turn`, waiting for its own answer where a run is gone on with: nobody watches that one any more, so whoever
        writes after a restart would see a message that was taken along end without a word.
        """
        active = self._ports.runs.active(turn.session_key)
        if active is None or active.run_id not in self._resumed or turn.queue is not None:
            return turn
        return replace(turn, queue="followup")

    async def _done(self, rows: Sequence[str], why: str) -> None:
        await self._ports.book.finish(rows, (), why)

    def _follow(self, run: Run, rows: tuple[str, ...]) -> None:
        if (known := self._open.get(run.run_id)) is not None:
            known.rows = tuple(dict.fromkeys((*known.rows, *rows)))
            return
        going = _Going(run, rows)
        if run.ended is not None:
            self._ended(going, run.ended)
            return
        self._open[run.run_id] = going
        going.alarm = self._ports.spawn(self._tell(going), "webchat story")
        if run.trace.model:
            self._note(going, "model", f"{run.trace.provider}/{run.trace.model}")

    def _heard(self, event: RunEvent) -> None:
        going = self._open.get(event.run_id)
        if going is None:
            return
        match event.body:
            case ModelChosen(provider, model):
                self._note(going, "model", f"{provider}/{model}")
            case ToolStarted(call):
                self._note(going, "tool", call.name)
            case RunEnded():
                self._open.pop(event.run_id)
                self._resumed.discard(event.run_id)
                self._ended(going, event.body)
            case _:
                pass

    def _ended(self, going: _Going, ended: RunEnded) -> None:
        """What only the process's end ended stays open: the next start goes on with it."""
        if unfinished(going.run, ended):
            return
        why = "joined" if going.run.led_by else outcome(going.run, ended, said(going.run, ended))
        line = ended.ending if ended.failure is None else ended.failure.message
        self._note(going, "answered", line)
        if going.alarm is not None:
            going.alarm.cancel()
        self._ports.spawn(self._finish(going, why), "webchat message")

    async def _finish(self, going: _Going, why: str) -> None:
        with suppress(GarraError):  # where the disk refuses, the next start sees that it is answered
            await self._ports.book.finish(going.rows, going.passed, why)

    def _note(self, going: _Going, station: str, detail: str) -> None:
        if station == "model" and detail in going.noted:
            return
        going.noted.add(detail)
        going.passed.append(Passed(self._ports.book.now(), station, detail))

    async def _tell(self, going: _Going) -> None:
        """Write down how far a run is that takes its time."""
        while True:
            await self._ports.clock.sleep(STORY_S)
            if going.passed:
                told, going.passed = going.passed, []
                with suppress(GarraError):
                    await self._ports.book.note(going.rows, told)


def _event(turn: Turn, sender: Sender) -> Inbound:
    """The message as the inbox keeps it: `raw` is what else its run was asked with."""
    return Inbound(
        turn.run_id,
        "message",
        Address(WEBCHAT, "default", turn.session_key, "direct"),
        sender,
        text=turn.text,
        media=tuple(Media("image", "", mime=image.media_type) for image in turn.images),
        raw={
            "meta": dict(turn.meta),
            "model": turn.model,
            "thinking": turn.thinking,
            "extra": turn.extra_system,
            **({"silent": True} if turn.silent else {}),
            **({"origin": turn.origin} if turn.origin != "operator" else {}),
            **taint.stored(turn.marks),
        },
    )


def _turn(row: InboxRow, event: Inbound, found: Found) -> Turn:
    raw = event.raw if isinstance(event.raw, Mapping) else {}
    meta = raw.get("meta")
    return Turn(
        RunId(row.run_id),
        found.key,
        AgentId(agent_of(found.key, "main")),
        found.text or event.text,
        model=raw.get("model") or None,
        thinking=thinking.level(str(raw.get("thinking") or "")),
        meta=meta if isinstance(meta, Mapping) else {},
        extra_system=str(raw.get("extra") or ""),
        origin=origin(str(raw.get("origin", "operator"))),
        silent=raw.get("silent") is True,
        marks=taint.of(raw),
    )
