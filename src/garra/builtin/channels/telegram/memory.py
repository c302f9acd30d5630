"""What a bot remembers: on disk where chats have moved to, in memory which messages are its own."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from garra.sdk.channel import Cursor

MOVES, MESSAGES = 500, 4_096
"""How many of each."""


class Kept:
    """The stored position, as `sdk.channel.Cursor`, and behind it in the same text the chats that moved:
    `POSITION OLD=NEW OLD=NEW`.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._position = ""
        self._moved: dict[str, int] | None = None

    @property
    def moves(self) -> int:
        return len(self._moved or ())

    async def get(self) -> str | None:
        await self._loaded()
        return self._position or None

    async def set(self, value: str) -> None:
        await self._loaded()
        self._position = value
        await self._store()

    async def to(self, chat: str) -> int | None:
        """Where a chat has moved to."""
        return (await self._loaded()).get(chat)

    async def move(self, old: str, new: int) -> None:
        """A chat has moved. It is known from now on, also where it cannot be stored; raises then."""
        moved = await self._loaded()
        if moved.get(old) == new:
            return
        moved[old] = new
        while len(moved) > MOVES:
            moved.pop(next(iter(moved)))
        await self._store()

    async def _store(self) -> None:
        moves = [f"{old}={new}" for old, new in (self._moved or {}).items()]
        await self._cursor.set(" ".join([self._position, *moves]))

    async def _loaded(self) -> dict[str, int]:
        if self._moved is None:
            position, *moves = (await self._cursor.get() or "").split(" ")
            if self._moved is None:
                self._position, self._moved = position, dict(filter(None, map(_move, moves)))
        return self._moved


def _move(text: str) -> tuple[str, int] | None:
    old, _, new = text.partition("=")
    return (old, int(new)) if new.removeprefix("-").isdecimal() else None


class Said:
    """The bot's newest messages."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def note(self, result: Any) -> None:
        """What a call gave: a message, an album, or something else."""
        for message in result if isinstance(result, list) else [result]:
            if isinstance(message, dict) and "message_id" in message and "chat" in message:
                self._known[str(message["chat"].get("id")), str(message["message_id"])] = None
        while len(self._known) > MESSAGES:
            self._known.popitem(last=False)

    def __contains__(self, message: tuple[str, str]) -> bool:
        """Whether (chat, message) is known to be the bot's."""
        return message in self._known
