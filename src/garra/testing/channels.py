"""What a channel's tests need: ports that are real where they can be, and a record of what it received."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from garra.sdk.channel import Address, Identity, Ignored, Inbound, Outbound


@dataclass
class MemoryCursor:
    """As `sdk.channel.Cursor`; `history` is every position that was set."""

    value: str | None = None
    history: list[str] = field(default_factory=list)

    async def get(self) -> str | None:
        return self.value

    async def set(self, value: str) -> None:
        self.value = value
        self.history.append(value)


@dataclass
class Heard:
    """As `sdk.channel.Receive` and `sdk.channel.Pulse`: keeps what came, in order. `refuse` fails the storing."""

    events: list[Inbound | Ignored] = field(default_factory=list)
    beats: int = 0
    me: Identity | None = None
    notes: list[str] = field(default_factory=list)
    before: Callable[[Inbound | Ignored], Any] | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self, event: Inbound | Ignored) -> None:
        if self.before is not None:
            self.before(event)
        self.events.append(event)
        self._news.set()

    def alive(self) -> None:
        self.beats += 1
        self._news.set()

    def connected(self, me: Identity) -> None:
        self.me = me
        self._news.set()

    def note(self, line: str) -> None:
        self.notes.append(line)
        self._news.set()

    @property
    def said(self) -> list[str]:
        """The words of the messages."""
        return [event.text for event in self.events if isinstance(event, Inbound)]

    async def until(self, done: Callable[[Heard], bool], timeout_s: float = 10.0) -> None:
        """Wait until `done(self)`. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while not done(self):
                self._news.clear()
                await self._news.wait()


def outbound(address: Address, text: str, key: str = "out:1", **more: Any) -> Outbound:
    """A message to send."""
    return Outbound(key, address, text, **more)
