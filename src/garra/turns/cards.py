"""Questions in chats: a card in each chat where one is asked, answered by a button or `/approve` in any of them.

It is shown whole, in as many messages as it takes, or as a file. What could not be shown whole is not asked there.
Once it is answered every card says so; those that had not left yet never do. A restart finds the cards in the outbox.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from hashlib import blake2s
from typing import Final, Protocol

from garra.core.approvals import Answer, Approval, short
from garra.core.errors import Conflict, GarraError, NotFound, Unavailable
from garra.core.showing import shown
from garra.core.value import frozen
from garra.domains.delivery.draft import Draft, OutboxRow, plain_draft
from garra.domains.exec.approvals import Approvals, Change
from garra.sdk.channel import Address, File, Limits
from garra.sdk.ports import Clock, Spawn
from garra.turns.approve import writable
from garra.turns.cardwords import buttons, ended, text

log = logging.getLogger(__name__)

MOST: Final = 8
"""Messages that one question may take; a longer one is sent as a file."""
PREFIX: Final = "approval:"
OUT: Final = f"out:{PREFIX}"
"""How the keys of cards begin, and those of their messages in the outbox."""
OVER: Final = "/over"
"""What follows the key of a card in the words of its end; no id holds a slash."""
BACK_MS: Final = 86_400_000
"""How far back a start looks for cards whose question has ended meanwhile."""


class Outbox(Protocol):
    """As much of the outbox as cards need."""

    async def put(self, messages: Sequence[Draft]) -> object: ...

    async def beginning(self, lead: str, since_ms: int = 0) -> list[OutboxRow]: ...

    async def drop(self, key: str, by: str = "") -> object: ...


class Places(Protocol):
    """Where a question is asked; see `turns.places`."""

    async def of(self, approval: Approval) -> tuple[Address, ...]: ...


@frozen
class Ports:
    """`drafts` makes messages of Markdown for an address, all of whose words are ours. `limits` is what an account's
    platform takes, None while it has no link. `attach` keeps a text as a file to send.
    """

    outbox: Outbox
    places: Places
    drafts: Callable[[str, Address, str], Sequence[Draft]]
    limits: Callable[[Address], Limits | None]
    attach: Callable[[str, str, bytes], Awaitable[File]]
    clock: Clock
    spawn: Spawn


class Cards:
    """The route to people in their chats, as `domains.exec.approvals.Route`."""

    def __init__(self, approvals: Approvals, ports: Ports) -> None:
        self._approvals, self._ports = approvals, ports
        self._at: dict[str, dict[str, Address]] = {}
        self._late: dict[str, tuple[Approval, Answer]] = {}
        self._end = approvals.subscribe(self._changed)

    def close(self) -> None:
        self._end()

    async def load(self) -> None:
        """Take up the cards of an earlier process: what was asked and has no card gets one, what ended says so."""
        ports = self._ports
        rows = await ports.outbox.beginning(OUT, ports.clock.now_ms() - BACK_MS)
        for row in rows:
            name, key = _named(row.key)
            if OVER not in row.key:
                self._at.setdefault(name, {})[key] = row.draft.address
        over = {_named(row.key)[0] for row in rows if OVER in row.key}
        waiting = {each.id for each in self._approvals.pending()}
        for name in [name for name in self._at if name not in waiting]:
            cards = self._at.pop(name)
            if name not in over:
                ports.spawn(self._past(name, cards), f"cards of {name}")
        for approval in self._approvals.pending():
            if approval.id not in self._at:
                ports.spawn(self._anew(approval), f"cards of {approval.id}")

    async def _anew(self, approval: Approval) -> None:
        """The process ended between the question and its card."""
        try:
            if await self.reaches(approval):
                await self.show(approval)
        except GarraError as error:
            log.warning("approval %s could not be shown: %s", approval.id, error.message)

    async def _past(self, name: str, cards: dict[str, Address]) -> None:
        try:
            approval = await self._approvals.find(name)
        except GarraError:
            return  # it is forgotten
        if not approval.open and approval.answer is not None:
            await self._over(approval, approval.answer, cards)

    async def reaches(self, approval: Approval) -> bool:
        """None where its id, which a program chose, is none that can be written in a chat."""
        return writable(approval.id) and bool(await self._ports.places.of(approval))

    async def show(self, approval: Approval) -> None:
        """Into the outbox with every card at once, or with none."""
        fault = Unavailable("the chat is there no more")
        drafts: list[Draft] = []
        cards: dict[str, Address] = {}
        for address in await self._ports.places.of(approval):
            try:
                made = await self._card(approval, address)
            except Unavailable as error:
                fault = error
                log.warning("approval %s is not shown in %s %s: %s", approval.id, address.channel, address.chat, error)
                continue
            drafts += [replace(each, position=each.position + len(drafts)) for each in made]
            cards[_key(approval.id, address)] = address
        if not cards:
            raise fault
        self._at[approval.id] = cards
        await self._ports.outbox.put(drafts)
        if self._at.get(approval.id) is not cards:  # it was answered before the cards were written
            await self._past(approval.id, cards)

    def shown(self, name: str) -> Sequence[Address]:
        """The chats in which a question is shown now."""
        return tuple(self._at.get(name, {}).values())

    async def _card(self, approval: Approval, address: Address) -> list[Draft]:
        key = f"{PREFIX}{_key(approval.id, address)}"
        drafts = list(self._ports.drafts(key, address, text(approval)))
        if len(drafts) > MOST:
            drafts = await self._as_file(approval, address, key)
        drafts[-1] = replace(drafts[-1], buttons=buttons(approval))
        return drafts

    async def _as_file(self, approval: Approval, address: Address, key: str) -> list[Draft]:
        data = shown(approval.question.subject).encode()
        limits = self._ports.limits(address)
        if limits is None or len(data) > limits.file_out:
            raise Unavailable("it is too long to be shown whole in the chat")
        file = await self._ports.attach(address.channel, f"approval-{short(approval.id)}.txt", data)
        first = Draft(f"out:{key}:file", address, (), files=(file,))
        rest = list(self._ports.drafts(key, address, text(approval, "(it is in the file above)")))
        return [first, *(replace(each, position=each.position + 1) for each in rest)]

    # ---- what became of it

    def heard(self, row: OutboxRow) -> None:
        """A listener of the outbox: a question whose every card is refused is one that nobody sees; one that was under
        way when its answer came says so, too.
        """
        if not row.key.startswith(OUT):
            return
        name, key = _named(row.key)
        if row.state == "dead" and key in self._at.get(name, {}):
            del self._at[name][key]
            if not self._at[name]:
                self._ports.spawn(self._approvals.unheard(name, "the chat did not take it"), f"card {name}")
        if row.state == "sent" and (late := self._late.pop(row.key, None)) is not None:
            self._ports.spawn(self._said(*late, {key: row.draft.address}, alone=False), f"card {name}")

    def _changed(self, change: Change) -> None:
        if change.answer is not None and (cards := self._at.pop(change.approval.id, None)):
            self._ports.spawn(self._over(change.approval, change.answer, cards), f"cards {change.approval.id}")

    async def _over(self, approval: Approval, answer: Answer, cards: dict[str, Address]) -> None:
        await self._said(approval, answer, cards, alone=len(cards) == 1)

    async def _said(self, approval: Approval, answer: Answer, cards: dict[str, Address], *, alone: bool) -> None:
        for key, address in cards.items():
            try:
                await self._tell(approval, answer, key, address, alone=alone)
            except GarraError as error:
                log.info("the card of %s stays as it is: %s", approval.id, error.message)

    async def _tell(self, approval: Approval, answer: Answer, key: str, address: Address, *, alone: bool) -> None:
        """The card says what became of it. Where it cannot be changed, a line does: where nobody answered, or where
        somebody did elsewhere.
        """
        rows = await self._left(approval, answer, f"{OUT}{key}:")
        if not rows:
            return
        line, limits, done = ended(approval, answer), self._ports.limits(address), f"{PREFIX}{key}{OVER}"
        if len(rows) == 1 and rows[0].platform_id and limits is not None and limits.edits_per_s > 0:
            drafts = list(self._ports.drafts(done, address, text(approval, after=line)))
            if len(drafts) == 1:
                await self._ports.outbox.put([replace(drafts[0], edits=rows[0].platform_id)])
                return
        if approval.phase == "expired" or not (alone or _answered_in(answer, address)):
            await self._ports.outbox.put([plain_draft(f"out:{done}", address, line)])

    async def _left(self, approval: Approval, answer: Answer, lead: str) -> list[OutboxRow]:
        """The messages of a card that are in its chat. What waits to be sent is not sent any more; what is being sent
        is told once it has arrived.
        """
        found = []
        for row in await self._ports.outbox.beginning(lead):
            if OVER in row.key or row.state == "dead":
                continue
            if row.state == "pending":
                try:
                    await self._ports.outbox.drop(row.key, "its answer")
                    continue
                except (Conflict, NotFound):
                    row = next(iter(await self._ports.outbox.beginning(row.key)), row)
            if row.state == "sending":
                self._late[row.key] = approval, answer
                continue
            found.append(row)
        return found


def _key(name: str, address: Address) -> str:
    """The key of a question's card in a chat: the same after a restart."""
    place = "\0".join((address.channel, address.account, address.chat, address.thread))
    return f"{name}/{blake2s(place.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def _named(key: str) -> tuple[str, str]:
    """The question's id and the card's key of a message of it."""
    name, _, rest = key.removeprefix(OUT).partition("/")
    return name, f"{name}/{rest[:12]}"


def _answered_in(answer: Answer, address: Address) -> bool:
    """Whether it was answered in this very chat, which has heard of it then."""
    return address.kind == "direct" and answer.by == f"{address.channel}:{address.account}:{address.chat}"
