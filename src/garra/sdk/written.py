"""Histories as bytes: written once, kept in pieces, so that a turn costs what is new in it and not what was before."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

from garra.core.messages import Message
from garra.core.value import frozen
from garra.sdk.recent import Recent

K = TypeVar("K", bound=Hashable)

Messages = tuple[Message, ...]
Pieces = tuple[bytes, ...]

Write = Callable[[Messages, int], bytes]
"""The bytes of messages that so many others stand before."""

PIECE: Final = 64 << 10
"""A piece that has so many bytes does not grow any more."""

SLICE: Final = 125
"""So many messages are written before others have their turn."""


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

    async def pieces(self, key: K | None, messages: Messages, write: Write) -> Pieces:
        """The bytes of `messages`; what was written for the same `key` is not written again. Without a key nothing is
        kept. A long history is written in slices, and others have their turn in between.
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
                await asyncio.sleep(0)
        if key is not None:
            self._kept.put(key, _Written(messages, pieces, size), size)
        return pieces

    def _ends(self, messages: Messages, at: int) -> Iterator[int]:
        """Where the slices end of what follows `at`."""
        while at < len(messages):
            at = min(at + SLICE, len(messages))
            while at < len(messages) and not self._apart(messages, at):
                at += 1
            yield at


def begins(messages: Messages, start: Messages) -> bool:
    """Whether `messages` begin with these very objects."""
    return len(start) <= len(messages) and all(map(operator.is_, start, messages))


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
