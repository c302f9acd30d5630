"""Words to the owner about messages that will not, or perhaps did not, arrive: once for each cause and hour."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2s

from garra.domains.delivery.draft import Draft, OutboxRow, plain_draft
from garra.domains.delivery.inbox import Inbox, InboxRow
from garra.domains.delivery.outbox import Outbox
from garra.sdk.channel import Address, Inbound
from garra.sdk.ports import Clock, Spawn

HOUR_MS = 3_600_000

Where = Callable[[Address], Address | None]
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

    def tell(self, about: Address, cause: str, text: str) -> None:
        """Write `text` to the owner, once an hour for the same cause. Nothing happens where there is no place to."""
        to = self._where(about)
        if to is not None:
            key = f"notice:{_digest(about, cause)}:{self._clock.now_ms() // HOUR_MS}"
            self._spawn(self._put(plain_draft(key, to, text, purpose="notice")), "owner notice")

    async def _put(self, draft: Draft) -> None:
        await self._outbox.put([draft])

    def _came(self, row: InboxRow) -> None:
        if row.state == "dead" and isinstance(row.event, Inbound):
            address = row.event.address
            who = row.event.sender.name or row.event.sender.id
            self.tell(
                address, row.why, f"A message from {who} ({place(address)}) was not answered: {row.why}.{_more(row.id)}"
            )

    def _went(self, row: OutboxRow) -> None:
        if row.draft.purpose in {"notice", "preview"} or row.reason.startswith("dropped by"):
            return
        address = row.draft.address
        if row.state == "dead":
            self.tell(
                address, row.reason, f"A message to {place(address)} was not delivered: {row.reason}.{_more(row.key)}"
            )
        elif row.state == "unsure":
            words = f"A message to {place(address)} may not have arrived: {row.reason}. It is not sent again by itself."
            self.tell(address, row.reason, words + _more(row.key))


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
