"""Small signs of life in a chat while a run works: somebody is typing; a reaction on the message that is answered.

They are wishes: where one fails, nothing follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from garra.core.errors import GarraError
from garra.core.progress import Mood
from garra.sdk.channel import Address, Channel, Reacts, Types
from garra.sdk.ports import Clock, Spawn, Task

TYPING_S = 4.0
"""Platforms show typing for about five seconds."""
PATIENCE = 3
"""Failures in a row after which no more signs are tried."""
MOOD_S = 1.0

MOODS: Mapping[Mood, str] = {"seen": "👀", "thinking": "🤔", "working": "✍", "done": "👍", "failed": "😱"}


class Typing:
    """Shows typing from `start` to `stop`, where the channel can."""

    def __init__(self, channel: Channel, address: Address, *, clock: Clock, spawn: Spawn) -> None:
        self._channel, self._address, self._clock, self._spawn = channel, address, clock, spawn
        self._task: Task | None = None

    def start(self) -> None:
        if self._task is None and hasattr(self._channel, "type"):
            self._task = self._spawn(self._show(cast(Types, self._channel)), f"typing in {self._address.chat}")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _show(self, channel: Types) -> None:
        failures = 0
        while failures < PATIENCE:
            try:
                await channel.type(self._address)
                failures = 0
            except (GarraError, TimeoutError):
                failures += 1
            await self._clock.sleep(TYPING_S)


class Reaction:
    """One reaction on one message, which changes with the mood; the newest mood wins."""

    def __init__(self, channel: Channel, address: Address, message_id: str, *, clock: Clock, spawn: Spawn) -> None:
        self._channel, self._address, self._message_id = channel, address, message_id
        self._clock, self._spawn = clock, spawn
        self._wanted: str | None = None
        self._shown = ""
        self._task: Task | None = None
        self._failures = 0

    def show(self, emoji: str) -> None:
        """Show this emoji; an empty one takes the reaction away."""
        if not hasattr(self._channel, "react") or not self._message_id:
            return
        self._wanted = emoji
        if self._task is None or self._task.done():
            self._task = self._spawn(self._react(cast(Reacts, self._channel)), f"reaction in {self._address.chat}")

    async def _react(self, channel: Reacts) -> None:
        while self._wanted is not None and self._failures < PATIENCE:
            emoji, self._wanted = self._wanted, None
            if emoji == self._shown:
                continue
            try:
                await channel.react(self._address, self._message_id, emoji)
                self._shown = emoji
                self._failures = 0
            except (GarraError, TimeoutError):
                self._failures += 1
            await self._clock.sleep(MOOD_S)
