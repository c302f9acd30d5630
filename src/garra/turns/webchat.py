"""WebChat, the gateway's own chat: what operators write is kept like any channel's message until it is answered.

It has no platform. A message is on disk before its sender is told that it began; a restart goes on with it; its story
is told like others'. Its answer is what the session's transcript holds, so nothing of it goes through the outbox.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from garra.core import thinking
from garra.core.errors import GarraError
from garra.core.events import ModelChosen, RunEnded, RunEvent, ToolStarted
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.keys import agent_of
from garra.core.value import frozen
from garra.domains.delivery.accounts import WEBCHAT
from garra.domains.delivery.inbox import Accepted, InboxRow
from garra.runs.run import Run, Turn
from garra.sdk.channel import Address, Inbound, Media, Sender
from garra.sdk.ports import Spawn
from garra.turns.answers import outcome, said, unfinished
from garra.turns.parts import Runs, Sessions, Timeline
from garra.turns.recovery import Found, standing

LOST: Final = "A restart came before the pictures of your last message were stored. Please send it again."

Say = Callable[[SessionKey, str], Awaitable[Any]]
"""Puts a line of ours into a session, for all who watch it."""


class Inbox(Protocol):
    """As `domains.delivery.inbox`."""

    async def enter(self, event: Inbound, run_id: str, session_key: str) -> Accepted: ...

    async def done(self, row_id: str, why: str) -> InboxRow: ...


@frozen
class Ports:
    """What it works with."""

    inbox: Inbox
    timeline: Timeline
    runs: Runs
    sessions: Sessions
    spawn: Spawn
    warn: Callable[[str], object]


@dataclass(slots=True)
class _Going:
    """A run and the messages it answers."""

    run: Run
    rows: tuple[str, ...]
    noted: set[str] = field(default_factory=set)


class WebChat:
    """All messages of operators that are not answered yet."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._open: dict[RunId, _Going] = {}
        ports.runs.subscribe(self._heard)

    async def submit(self, turn: Turn, sender: Sender) -> Run:
        """Store the message, then start its run. Raises what either raises; a message whose run was refused is done."""
        row = (await self._ports.inbox.enter(_event(turn, sender), turn.run_id, turn.session_key)).row_id
        try:
            run = await self._ports.runs.submit(turn)
        except GarraError as error:
            await self._ports.inbox.done(row, f"refused: {error.message}")
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
            for row in rows.values():
                await self._ports.inbox.done(row.id, f"failed: {error.message}")
            return
        found = standing(messages, key, list(rows))
        for each in found:
            joined = [rows[other.run_id].id for other in found if other.led_by == each.run_id]
            if each.led_by not in rows:
                await self._again(rows[each.run_id], each, joined, say)

    async def _again(self, row: InboxRow, found: Found, joined: Sequence[str], say: Say) -> None:
        """One run: its answer is there, or it goes on behind what it did."""
        inbox, event = self._ports.inbox, row.event
        assert isinstance(event, Inbound)
        if found.over or found.led_by:
            for each in (row.id, *joined):
                await inbox.done(each, "answered" if found.over else "joined")
            return
        try:
            if event.media and not found.text:
                await say(found.key, LOST)
                await inbox.done(row.id, "failed: its pictures were not stored")
                return
            run = await self._ports.runs.submit(_turn(row, event, found))
        except GarraError as error:
            self._ports.warn(f"message {row.id} is not gone on with: {error.message}")
            await inbox.done(row.id, f"failed: {error.message}")
            return
        self._follow(run, (row.id, *joined))

    def _follow(self, run: Run, rows: tuple[str, ...]) -> None:
        if (known := self._open.get(run.run_id)) is not None:
            known.rows = tuple(dict.fromkeys((*known.rows, *rows)))
            return
        going = _Going(run, rows)
        if run.ended is not None:
            self._ended(going, run.ended)
            return
        self._open[run.run_id] = going
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
                self._ended(going, event.body)
            case _:
                pass

    def _ended(self, going: _Going, ended: RunEnded) -> None:
        """What only the process's end ended stays open: the next start goes on with it."""
        if unfinished(going.run, ended):
            return
        why = "joined" if going.run.led_by else outcome(going.run, ended, said(going.run, ended))
        line = ended.ending if ended.failure is None else ended.failure.message
        self._ports.spawn(self._finish(going.rows, line, why), "webchat message")

    async def _finish(self, rows: Sequence[str], line: str, why: str) -> None:
        with suppress(GarraError):  # where the disk refuses, the next start sees that it is answered
            await self._ports.timeline.note_all(rows, "answered", line)
            for row in rows:
                await self._ports.inbox.done(row, why)

    def _note(self, going: _Going, station: str, detail: str) -> None:
        if station == "model" and detail in going.noted:
            return
        going.noted.add(detail)
        self._ports.spawn(self._noted(going.rows, station, detail), "timeline")

    async def _noted(self, rows: Sequence[str], station: str, detail: str) -> None:
        with suppress(GarraError):
            await self._ports.timeline.note_all(rows, station, detail)


def _event(turn: Turn, sender: Sender) -> Inbound:
    """The message as the inbox keeps it: `raw` is what else its run was asked with."""
    return Inbound(
        turn.run_id,
        "message",
        Address(WEBCHAT, "default", turn.session_key, "direct"),
        sender,
        text=turn.text,
        media=tuple(Media("image", "", mime=image.media_type) for image in turn.images),
        raw={"meta": dict(turn.meta), "model": turn.model, "thinking": turn.thinking, "extra": turn.extra_system},
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
    )
