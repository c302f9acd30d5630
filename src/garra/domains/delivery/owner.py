"""Words to the owner about messages that will not, or perhaps did not, arrive: once for each cause and hour."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from hashlib import blake2s
from typing import Final

from garra.core.errors import GarraError
from garra.domains.delivery.draft import Draft, OutboxRow, plain_draft
from garra.domains.delivery.inbox import STRANGER, Inbox, InboxRow
from garra.domains.delivery.ledger import Ledger
from garra.domains.delivery.outbox import Outbox
from garra.sdk.channel import Address, Inbound
from garra.sdk.ports import Clock, Spawn

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
PAUSE_S = 5.0

log = logging.getLogger(__name__)

Where = Callable[[Address], Awaitable[Address | None]]
"""Where the owner hears of a fault at this address: somewhere else, or None when there is no such place."""


class Owner:
    """Tells the owner. It listens from the moment it is made."""

    def __init__(self, inbox: Inbox, outbox: Outbox, where: Where, *, clock: Clock, spawn: Spawn) -> None:
        self._outbox = outbox
        self._where = where
        self._clock = clock
        self._spawn = spawn
        self._ends = (inbox.subscribe(self._came), outbox.subscribe(self._went))

    def close(self) -> None:
        for end in self._ends:
            end()

    async def start(self, ledger: Ledger) -> None:
        """Tell what an earlier process died before telling. What was told already is not told again."""
        since = self._clock.now_ms() - DAY_MS
        for row in await ledger.failed(since):
            if isinstance(row, InboxRow):
                self._came(row)
            else:
                self._went(row)

    def tell(self, about: Address, cause: str, text: str, at_ms: int | None = None, *, each_chat: bool = True) -> None:
        """Write `text` to the owner, once an hour for the same cause. Nothing happens where there is no place to.

        `at_ms` is when it happened; now, when it is not told. Without `each_chat` an account's chats are one cause.
        """
        hour = (self._clock.now_ms() if at_ms is None else at_ms) // HOUR_MS
        near = about if each_chat else replace(about, chat="")
        self._spawn(self._write(f"notice:{_digest(near, cause)}:{hour}", about, text), "owner notice")

    async def _write(self, key: str, about: Address, text: str) -> None:
        to = await self._where(about)
        if to is None:
            log.debug("nobody to tell: %s", text.partition("\n")[0])
            return
        await self._put(plain_draft(key, to, text, purpose="notice"))

    async def _put(self, draft: Draft) -> None:
        """Write it, when the disk refuses, again until it does not."""
        while True:
            try:
                await self._outbox.put([draft])
            except GarraError as error:
                if not error.retryable:
                    raise
                await self._clock.sleep(PAUSE_S)
            else:
                return

    def _came(self, row: InboxRow) -> None:
        """No run ever had a message that was crowded out: it may be of many in a group, whose chosen names are not the
        owner's to read, and who may come with many chats. Of those who were never let in nothing is told.
        """
        if row.state == "dead" and isinstance(row.event, Inbound) and not row.why.startswith(STRANGER):
            sender, heard = row.event.sender, bool(row.session_key)
            who = (" ".join(sender.name.split()) if heard else "") or sender.id or "somebody"
            text = f"A message from {who} ({place(row.event.address)}) was not answered: {row.why}."
            self.tell(row.event.address, row.why, text + _more(row.id), row.updated_at, each_chat=heard)

    def _went(self, row: OutboxRow) -> None:
        words = _ENDS.get(row.state)
        if words is None or row.draft.purpose in {"notice", "preview"} or row.reason.startswith("dropped by"):
            return
        text = f"A message to {place(row.draft.address)} {words.format(row.reason)}"
        self.tell(row.draft.address, row.reason, text + _more(row.key), row.updated_at)


_ENDS: Final[Mapping[str, str]] = {
    "dead": "was not delivered: {}.",
    "unsure": "may not have arrived: {}. It is not sent again by itself.",
}


def _more(name: str) -> str:
    return f"\nSee it: garra messages show {name}\nSend it again: garra messages retry {name}"


def place(address: Address) -> str:
    """An address in words."""
    thread = f", thread {address.thread}" if address.thread else ""
    account = f" ({address.account})" if address.account not in ("", "default", "main") else ""
    return f"{address.channel}{account} chat {address.chat}{thread}"


def _digest(about: Address, cause: str) -> str:
    text = "\0".join((about.channel, about.account, about.chat, cause))
    return blake2s(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
