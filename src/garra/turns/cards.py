"""Questions in chats: a card in the chat where the turn was asked for, or in its owner's own; answered by a button or
`/approve`.

It is shown whole, in as many messages as it takes, or as a file. What could not be shown whole is not asked there.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from garra.core.approvals import CHOICES, Answer, Approval, Choice, Question, doing, said, short
from garra.core.errors import GarraError, Unavailable
from garra.core.showing import measured, shown
from garra.core.value import frozen
from garra.domains.access.allowlist import Accounts
from garra.domains.delivery.draft import Draft, OutboxRow, plain_draft
from garra.domains.exec.approvals import Approvals, Change
from garra.sdk.channel import Address, Button, File, Limits
from garra.sdk.ports import Spawn
from garra.turns.parts import Asked

log = logging.getLogger(__name__)

MOST: Final = 8
"""Messages that one question may take; a longer one is sent as a file."""
LABELS: Final[dict[Choice, str]] = {"allow-once": "Allow once", "allow-always": "Allow always", "deny": "Deny"}
PREFIX: Final = "approval:"
"""How the keys of cards begin in the outbox."""


class Outbox(Protocol):
    """As much of the outbox as cards need."""

    async def put(self, messages: Sequence[Draft]) -> object: ...

    async def get(self, key: str) -> OutboxRow: ...


@frozen
class Ports:
    """`own` is a direct chat with an owner, None where there is none. `drafts` makes messages of Markdown for an
    address. `limits` is what an account's platform takes, None while it has no link. `attach` keeps a text as a file
    to send.
    """

    outbox: Outbox
    accounts: Accounts
    own: Callable[[], Awaitable[Address | None]]
    drafts: Callable[[str, Asked, str], Sequence[Draft]]
    limits: Callable[[Address], Limits | None]
    attach: Callable[[str, str, bytes], Awaitable[File]]
    spawn: Spawn


class Cards:
    """The route to owners in their chats, as `domains.exec.approvals.Route`."""

    def __init__(self, approvals: Approvals, ports: Ports) -> None:
        self._approvals, self._ports = approvals, ports
        self._at: dict[str, tuple[Address, str]] = {}
        self._end = approvals.subscribe(self._changed)

    def close(self) -> None:
        self._end()

    async def reaches(self, approval: Approval) -> bool:
        return await self._where(approval) is not None

    async def show(self, approval: Approval) -> None:
        address = await self._where(approval)
        if address is None:
            raise Unavailable("the chat is there no more")
        drafts = await self._card(approval, address)
        self._at[approval.id] = (address, drafts[0].key if len(drafts) == 1 else "")
        await self._ports.outbox.put(drafts)

    async def _where(self, approval: Approval) -> Address | None:
        """The chat that is asked: that of the turn where an owner is sure to see it and may answer, else his own."""
        source = approval.source
        if source.unattended or not source.channel:
            return None
        account = self._ports.accounts.find(source.channel, source.account)
        here = Address(
            source.channel, source.account, source.chat, "direct" if source.direct else "group", source.thread,
            source.parent, source.guild,
        )  # fmt: skip
        if not account.asks:
            return None
        answering = account.policy.answering
        if source.direct:
            return here if answering.names(source.sender) else await self._own()
        group = account.group(source.chat, source.thread, source.parent, source.guild)
        return here if answering.ids and group.command_level == "all" else await self._own()

    async def _own(self) -> Address | None:
        """An owner's own chat; None where its account has others answer than him."""
        own = await self._ports.own()
        if own is None:
            return None
        account = self._ports.accounts.find(own.channel, own.account)
        named = account.policy.approvers
        return own if account.asks and (not named.ids or named.names(own.chat)) else None

    async def _card(self, approval: Approval, address: Address) -> list[Draft]:
        key, asked = f"{PREFIX}{approval.id}", Asked(address)
        drafts = list(self._ports.drafts(key, asked, text(approval, address)))
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
        first = Draft(f"{key}:file", address, (), files=(file,))
        rest = list(self._ports.drafts(key, Asked(address), text(approval, address, "(it is in the file above)")))
        return [first, *(replace(each, position=each.position + 1) for each in rest)]

    # ---- what became of it

    def failed(self, row: OutboxRow) -> None:
        """A listener of the outbox: a card that will not arrive is one that nobody sees."""
        if row.state == "dead" and row.key.startswith(PREFIX):
            name = row.key.removeprefix(PREFIX)[:36]
            if name in self._at:
                self._ports.spawn(self._approvals.unheard(name, "the chat did not take it"), f"card {name}")

    def _changed(self, change: Change) -> None:
        if change.answer is not None and (at := self._at.pop(change.approval.id, None)) is not None:
            self._ports.spawn(self._over(change.approval, change.answer, *at), f"card {change.approval.id}")

    async def _over(self, approval: Approval, answer: Answer, address: Address, key: str) -> None:
        """The card says what became of it; where it cannot be changed, a line says that nobody answered."""
        limits = self._ports.limits(address)
        line = ended(approval, answer)
        done = f"{PREFIX}{approval.id}:over"
        try:
            row = await self._ports.outbox.get(key) if key and limits and limits.edits_per_s > 0 else None
            drafts = list(self._ports.drafts(done, Asked(address), text(approval, address, after=line))) if row else []
            if row is not None and row.platform_id and len(drafts) == 1:
                await self._ports.outbox.put([replace(drafts[0], edits=row.platform_id)])
            elif approval.phase == "expired":
                await self._ports.outbox.put([plain_draft(done, address, line)])
        except GarraError as error:
            log.info("the card of %s stays as it is: %s", approval.id, error.message)


def text(approval: Approval, address: Address, instead: str = "", *, after: str = "") -> str:
    """The card in Markdown. `instead` stands for what is asked where that is elsewhere; `after` ends what is over."""
    question = approval.question
    subject = instead or fenced(shown(question.subject))
    what = doing(question.kind, question.tool)
    lines = [f"**May the agent {question.agent_id} {what}?**", subject, *_about(question)]
    if after:
        return "\n".join((*lines, "", after))
    minutes = max(1, round(question.life_ms / 60_000))
    name = short(approval.id)
    ways = [f"`/approve {name} allow-always`"] if "allow-always" in question.choices else []
    lines.append(f"Open for {minutes} min. {', '.join((*ways, f'`/deny {name}`'))}, or once:")
    return "\n".join((*lines, f"/approve {short(approval.id)} allow-once"))


def _about(question: Question) -> list[str]:
    size = measured(question.subject)
    lines = [f"Note: {size}."] if size else []
    lines += [f"Folder: `{question.cwd}`"] if question.cwd else []
    if question.host and question.host != "sandbox":
        lines.append(f"Where: {question.host}")
    if question.env:
        lines.append(f"With: {', '.join(question.env)}")
    lines += [f"Because {line}" for line in question.why]
    if "allow-always" in question.choices:
        lines.append(f"Allow always means: {question.remembers}")
    return lines


def fenced(words: str) -> str:
    """As code that nothing in it can end."""
    fence = "```"
    while fence in words:
        fence += "`"
    return f"{fence}\n{words}\n{fence}"


def buttons(approval: Approval) -> tuple[tuple[Button, ...], ...]:
    choices = [choice for choice in CHOICES if choice in approval.question.choices]
    return (tuple(Button(LABELS[choice], f"/approve {approval.id} {choice}") for choice in choices),)


def ended(approval: Approval, answer: Answer) -> str:
    """What became of a question, in a line."""
    match approval.phase:
        case "expired":
            return f"The question {short(approval.id)} has expired: nobody answered, and it was not done."
        case "withdrawn":
            return f"The question {short(approval.id)} is not needed any more."
        case _:
            words = said(answer)
            return f"{words[0].upper()}{words[1:]}."
