"""Reports of sub-agents on their way to a parent in a chat: rows of the inbox that nobody outside has said.

They come by the same pump as messages, and go to the same runs, lanes and outbox. No gate judges them and no route is
looked up: where one goes was settled when its parent was asked, and stands with the sub-agent's record. What names it
in the inbox is a ticket that no platform and no model ever sees.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import msgspec

from garra.core import reports
from garra.core.errors import GarraError
from garra.core.ids import RunId
from garra.core.lineage import Child
from garra.domains.delivery.inbox import InboxRow
from garra.runs.run import Run, Turn
from garra.sdk.channel import Address, Inbound, Sender
from garra.turns import ask
from garra.turns.answers import Going, numbered
from garra.turns.kernel import Kernel
from garra.turns.outcome import AGAIN, STUCK, TRIES, Outcome
from garra.turns.parts import Asked, Ports
from garra.turns.queueing import settings
from garra.turns.recovery import Found

log = logging.getLogger(__name__)

LEAD: Final = "subagent:"
SENDER: Final = "subagent"
FAILED: Final = ("failed", "timeout")


class Turns(Protocol):
    """What a pump hands messages to."""

    async def turn(self, row: InboxRow) -> Outcome: ...

    async def resume(
        self, rows: Sequence[InboxRow], found: Found, tries: int = 0, begun: Callable[[], None] = lambda: None
    ) -> Outcome: ...


class Children(Protocol):
    """As much of the table of sub-agents as is asked of it."""

    def by_ticket(self, ticket: str) -> Child | None: ...

    def report(self, child: Child) -> Turn: ...


class Inbox(Protocol):
    async def accept(self, event: Inbound) -> Any: ...


class WebChat(Protocol):
    async def submit(self, turn: Turn, sender: Sender) -> Run: ...


class Reports:
    """The kernel, with this before it."""

    def __init__(self, kernel: Kernel, ports: Ports, children: Children) -> None:
        self._kernel, self._ports, self._children = kernel, ports, children

    async def turn(self, row: InboxRow) -> Outcome:
        child = self._child(row)
        if child is None:
            return await self._kernel.turn(row)
        return await self._kernel.turn(row, lambda: self._said(row, child, row.tries, self._new(row, child)))

    async def resume(
        self, rows: Sequence[InboxRow], found: Found, tries: int = 0, begun: Callable[[], None] = lambda: None
    ) -> Outcome:
        child, row = self._child(rows[0]), rows[0]
        if child is None:
            return await self._kernel.resume(rows, found, tries, begun)
        try:
            return await self._said(row, child, tries, self._again(row, child, found, begun))
        except GarraError as error:
            log.warning("the report of sub-agent %s waits: %s", child.run_id, error.message)
            return Outcome("dispatch", why=AGAIN if tries < TRIES else STUCK)

    def _child(self, row: InboxRow) -> Child | None:
        event = row.event
        if not isinstance(event, Inbound) or event.event != "other" or not event.id.startswith(LEAD):
            return None
        return self._children.by_ticket(event.id.removeprefix(LEAD))

    async def _said(self, row: InboxRow, child: Child, tries: int, turn: Awaitable[Outcome]) -> Outcome:
        """A report that cannot become a turn is said as it is. Raises what is to be tried again."""
        try:
            return await turn
        except GarraError as error:
            if error.retryable and tries < TRIES:
                raise
            text = f"{error.message}\n\n{bare(child)}"
        drafts = self._ports.voice.drafts(f"{row.id}:failed", await self._asked(row, child), text)
        await self._ports.outbox.put(drafts, inbox_id=row.id, why="failed")
        return Outcome("dispatch", why="failed")

    async def _new(self, row: InboxRow, child: Child) -> Outcome:
        await self._ports.inbox.adopt(row.id, row.id, child.home.key)
        return await self._answered(row, child, await self._begin(row, child))

    async def _begin(self, row: InboxRow, child: Child) -> Going:
        await self._ports.switch.cleared()
        session = await self._ports.sessions.get(child.home.key)
        address = row.event.address
        assert address is not None
        waits = settings(self._ports.config(), address.channel, session)
        told = self._children.report(child)
        turn = replace(told, run_id=RunId(row.id), queue=waits.mode, lane=waits, address=address)
        run = await self._ports.runs.submit(turn)
        return self._kernel.answers.begin(run, (row.id,), await self._asked(row, child))

    async def _answered(self, row: InboxRow, child: Child, going: Going) -> Outcome:
        """Where the parent could not even read it, the chat is told what the report says."""
        why = await self._kernel.answers.all([going])
        if why in FAILED:
            drafts = self._ports.voice.drafts(f"{row.id}:report", going.asked, bare(child))
            await self._ports.outbox.put(drafts)
        return Outcome("dispatch", dispatched=True, why=why)

    async def _again(self, row: InboxRow, child: Child, found: Found, begun: Callable[[], None]) -> Outcome:
        if not found.over:
            going = await self._begin(row, child)
            begun()
            return await self._answered(row, child, going)
        begun()
        asked = await self._asked(row, child)
        drafts = numbered([each for text in found.answer for each in self._ports.voice.drafts(row.id, asked, text)])
        if drafts:
            await self._ports.outbox.put(drafts, inbox_id=row.id)
        else:
            await self._ports.inbox.done(row.id, "silence")
        return Outcome("dispatch", dispatched=True, why="answered" if drafts else "silence")

    async def _asked(self, row: InboxRow, child: Child) -> Asked:
        session = await self._ports.sessions.get(child.home.key)
        extra = session.extra if session else {}
        assert row.event.address is not None
        verbose = (session.verbose if session else None) or ""
        return Asked(row.event.address, "", ask.reply_mode(extra.get("replyToMode")), verbose)


def bare(child: Child) -> str:
    """A report as a person reads it who is told nothing else."""
    return f"{child.name}: {child.report or reports.told(child)['status']}"


class Post:
    """Gives reports to parents that are no sub-agents: those in chats by the inbox, others as operators' words are."""

    def __init__(self, inbox: Inbox, webchat: WebChat, ports: Ports) -> None:
        self._inbox, self._webchat, self._ports = inbox, webchat, ports

    async def give(self, child: Child, turn: Turn) -> None:
        """As `runs.subagents.Post`."""
        if child.home.address is not None:
            await self._inbox.accept(event_of(child))
            return
        try:
            messages = (await self._ports.sessions.transcript(child.home.key)).messages()
        except GarraError as error:
            if error.retryable:
                raise
            messages = ()  # its session is gone: it begins anew with the report
        if not reports.standing(messages, turn.run_id).heard:
            await self._webchat.submit(turn, Sender(SENDER, child.name))


def event_of(child: Child) -> Inbound:
    """A report as the inbox keeps it: that there is one, and for which chat."""
    address = msgspec.convert(child.home.address, Address)
    return Inbound(f"{LEAD}{child.ticket}", "other", address, Sender(SENDER, child.name), text=child.name)
