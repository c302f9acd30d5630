"""Histories as bytes: written once, kept in pieces, so that a turn costs what is new in it and not what was before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

from garra.core.messages import Image, Message, ToolCall
from garra.core.value import frozen
from garra.sdk.recent import Recent

K = TypeVar("K", bound=Hashable)

Messages = tuple[Message, ...]
Pieces = tuple[bytes, ...]

Write = Callable[[Messages, int], bytes]
"""The bytes of messages that so many others stand before."""

Rest = Callable[[], Awaitable[None]]
"""Long work on the loop is done in slices; this is awaited after each, so that others have their turn."""

PIECE: Final = 64 << 10
"""A piece that has so many bytes does not grow any more."""

SLICE: Final = 100
"""So many short messages are written before others have their turn."""

SHORT: Final = 512
"""A message counts once more for each so many characters."""


@frozen
class _Written:
    """The bytes of `messages`, `size` in all."""

    messages: Messages = ()
    pieces: Pieces = ()
    size: int = 0


class Written(Generic[K]):
    """The bytes of sessions' histories; about `room` bytes are kept, of those used last.

    `apart(messages, at)` says whether what stands before `at` is written the same whatever follows: only there a
    history is cut.
    """

    def __init__(self, apart: Callable[[Messages, int], bool], room: int = 8 << 20) -> None:
        self._apart = apart
        self._kept: Recent[K, _Written] = Recent(room)

    def __len__(self) -> int:
        return len(self._kept)

    async def pieces(self, key: K | None, messages: Messages, write: Write, rest: Rest | None = None) -> Pieces:
        """The bytes of `messages`; what was written for the same `key` is not written again. Without a key nothing is
        kept. A long history is written in slices, with a `rest` in between.
        """
        known = self._kept.get(key) if key is not None else None
        if known is None or not begins(messages, known.messages):
            known = _Written()
        at, pieces, size = len(known.messages), known.pieces, known.size
        for end in self._ends(messages, at):
            data = write(messages[at:end], at)
            pieces, size = longer(pieces, data), size + len(data)
            at = end
            if at < len(messages):
                await (breath if rest is None else rest)()
        if key is not None:
            self._kept.put(key, _Written(messages, pieces, size), size)
        return pieces

    def _ends(self, messages: Messages, at: int) -> Iterator[int]:
        """Where the slices end of what follows `at`."""
        begun = at
        for end in ends(messages, at):
            if end <= begun:
                continue
            while end < len(messages) and not self._apart(messages, end):
                end += 1
            yield end
            begun = end


async def breath() -> None:
    """Others have their turn once."""
    await asyncio.sleep(0)


def ends(messages: Messages, at: int, most: int = SLICE) -> Iterator[int]:
    """Where the slices end of what follows `at`: each has `most` short messages, or fewer long ones."""
    room = most
    for index in range(at, len(messages)):
        room -= 1 + _length(messages[index]) // SHORT
        if room <= 0:
            yield index + 1
            room = most
    if at < len(messages) and room < most:
        yield len(messages)


def _length(message: Message) -> int:
    """Characters, roughly: of words, thoughts and pictures; those of calls are not worth looking."""
    size = 0
    for part in message.content:
        if not isinstance(part, ToolCall):
            size += len(part.data if isinstance(part, Image) else part.text)
    return size


def begins(messages: Messages, start: Messages) -> bool:
    """Whether `messages` begin with the objects of `start`. Only the last is looked for itself, of the others such as
    are equal will do: a comparison of tuples looks at no object that is the same, and is ten times as quick.
    """
    end = len(start)
    return not end or (end <= len(messages) and messages[end - 1] is start[-1] and messages[:end] == start)


def shared(messages: Messages, others: Messages) -> int:
    """How many objects both begin with."""
    if begins(messages, others):
        return len(others)
    pairs = enumerate(zip(messages, others, strict=False))
    return next((at for at, (one, other) in pairs if one is not other), min(len(messages), len(others)))


def longer(pieces: Pieces, data: bytes) -> Pieces:
    """`pieces` and then `data`: a last piece that is small grows, the others stay the same objects."""
    if pieces and len(pieces[-1]) < PIECE:
        return (*pieces[:-1], pieces[-1] + data)
    return (*pieces, data) if data else pieces


def closed(pieces: Pieces) -> Pieces:
    """A list whose members each end in a comma, as the end of a JSON object; something is there."""
    *before, last = filter(None, pieces)
    return (*before, last.removesuffix(b",") + b"]}")
