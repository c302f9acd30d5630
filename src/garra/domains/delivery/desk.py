"""What the owner and other programs do with messages: look at them, and send one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from garra.core.errors import NotFound, UserError
from garra.core.value import frozen
from garra.domains.delivery.accounts import WEBCHAT
from garra.domains.delivery.draft import Draft, Form, OutboxRow
from garra.domains.delivery.inbox import Inbox
from garra.domains.delivery.ledger import Ledger
from garra.domains.delivery.media import Link, MediaRoot, fitted
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.timeline import Timeline
from garra.sdk.channel import Address, Channel, File, Limits

Drafting = Callable[[str, Address, str], Sequence[Draft]]
"""Words (Markdown) as drafts for an address: `(key, address, text)`; keys begin with `key`."""


@frozen
class Running:
    """One account that sends: what its platform takes, and whether its link stands now."""

    channel: str
    account: str
    limits: Limits
    up: bool = True


@frozen
class Sent:
    """What became of a message that was asked for. `rows` are its parts."""

    address: Address
    rows: tuple[OutboxRow, ...]

    @property
    def state(self) -> str:
        """`sent` when all arrived, else the first state that is not."""
        return next((row.state for row in self.rows if row.state != "sent"), "sent")

    @property
    def message_id(self) -> str:
        """The platform's id of the first part, where it has one yet."""
        return self.rows[0].platform_id if self.rows else ""


@frozen
class Wish:
    """A message that somebody asks for. `to` is a chat's id, or `channel:chat`, with `:topic:thread` behind it."""

    key: str
    to: str
    text: str
    channel: str = ""
    account: str = ""
    thread: str = ""
    reply_to: str = ""
    silent: bool = False
    files: tuple[File, ...] = ()


@frozen
class Desk:
    """The parts of delivery, for methods of the gateway. `accounts` are those that are configured now; `channels` are
    the ids of all channels there are, with an account or without; `link` says where too large a file can be had,
    `channel` gives what sends into a chat.
    """

    inbox: Inbox
    outbox: Outbox
    timeline: Timeline
    ledger: Ledger
    media: MediaRoot
    accounts: Callable[[], Sequence[Running]]
    drafting: Drafting
    channels: Callable[[], Collection[str]] = frozenset
    link: Link = lambda _: None
    channel: Callable[[Address], Channel | None] = lambda _: None

    def known(self, channel: str) -> None:
        """Raises NotFound for a channel that no plugin brings."""
        names = sorted({*self.channels(), *(each.channel for each in self.accounts())})
        if channel not in names:
            from difflib import get_close_matches  # noqa: PLC0415 - seldom needed, and large

            near = get_close_matches(channel, names, n=1)
            meant = f"did you mean {near[0]}?" if near else f"there is {', '.join(names) or 'none'}"
            raise NotFound(f"there is no channel {channel[:64]!r} here; {meant}")

    def waits_for(self, row: OutboxRow) -> str:
        """Why a message waits, besides what became of its last try; empty where nothing stands in its way."""
        at = row.draft.address
        running = next(
            (each for each in self.accounts() if (each.channel, each.account) == (at.channel, at.account)), None
        )
        if row.state != "pending" or (running and running.up):
            return ""
        if running is None:
            return f"there is no account {at.channel}/{at.account} that can send; see garra channels list"
        return f"{at.channel}/{at.account} has no connection now; see garra channels status"

    async def target(self, wish: Wish) -> tuple[Running, Address]:
        """Where a wish leads. Raises UserError or NotFound with what to write instead."""
        channel, chat, thread = parsed(wish.to, {*self.channels(), *(each.channel for each in self.accounts())})
        if wish.channel and channel and wish.channel != channel:
            raise UserError(f"{wish.to} is a chat of {channel}, not of {wish.channel}")
        running = _picked(self.accounts(), wish.channel or channel, wish.account)
        known = await self.ledger.address(running.channel, running.account, chat)
        kind = known.kind if known else "group" if chat.startswith(("-", "#", "!")) else "direct"
        place = Address(running.channel, running.account, chat, kind)
        return running, replace(known or place, thread=wish.thread or thread, roles=())

    async def send(self, wish: Wish, wait_s: float) -> Sent:
        """Write it to the outbox and wait for what the platform says: at most `wait_s`, and hardly where its link is
        down. The same key is sent once.
        """
        running, address = await self.target(wish)
        key = f"send:{wish.key}"
        drafts = list(self.drafting(key, address, wish.text)) if wish.text.strip() else [Draft(key, address, ())]
        drafts[0] = replace(drafts[0], reply_to=wish.reply_to)
        drafts[-1] = fitted(replace(drafts[-1], files=wish.files), running.limits.file_out, self.link)
        if not drafts[0].forms and not drafts[-1].files:
            raise UserError("there is nothing to send: give a text or a file")
        drafts = [replace(each, silent=wish.silent, purpose="send", forms=each.forms or (EMPTY,)) for each in drafts]
        rows = await self.outbox.put(drafts)
        wait_s = wait_s if running.up else min(wait_s, DOWN_S)
        return Sent(address, tuple([await self._settled(row, wait_s) for row in rows]))

    async def _settled(self, row: OutboxRow, wait_s: float) -> OutboxRow:
        changed = asyncio.Event()
        end = self.outbox.subscribe(lambda moved: changed.set() if moved.key == row.key else None)
        try:
            async with asyncio.timeout(wait_s):
                while (row := await self.outbox.get(row.key)).state in ("pending", "sending"):
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            pass
        finally:
            end()
        return await self.outbox.get(row.key)


EMPTY = Form("plain", "")
DOWN_S = 1.5
"""How long a link that is down is waited for: it may just be starting."""


def parsed(to: str, channels: Collection[str]) -> tuple[str, str, str]:
    """`channel:chat:topic:thread` as its three parts; channel and thread may be missing. Raises UserError."""
    channel, sign, chat = to.strip().partition(":")
    channel = channel.lower()
    if not sign or channel not in channels:
        channel, chat = "", to.strip()
    chat, _, thread = chat.partition(":topic:")
    if not chat:
        raise UserError("to whom? give a chat's id, or CHANNEL:CHAT, such as telegram:123456789")
    return channel, chat, thread


def _picked(running: Sequence[Running], channel: str, account: str) -> Running:
    found = [each for each in running if channel in (each.channel, "") and account in ("", each.account)]
    if not channel:  # the gateway's own chat is meant only where it is named
        found = [each for each in found if each.channel != WEBCHAT]
    named = ", ".join(sorted({each.channel for each in running} - {WEBCHAT})) or "none"
    if not found:
        wanted = f"{f'{channel} ' if channel else ''}account{f' {account}' if account else ''}"
        raise NotFound(f"there is no {wanted} that can send (those that can: {named}); see garra channels list")
    if len({each.channel for each in found}) > 1:
        raise UserError(f"which channel? configured: {named}")
    default = [each for each in found if each.account in ("default", "main")]
    return (default or found)[0]
