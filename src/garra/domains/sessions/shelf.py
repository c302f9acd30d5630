"""Holds on to the transcripts that were used last, so that the next turn need not read them anew."""

from __future__ import annotations

from collections import OrderedDict

from garra.domains.sessions.transcript import Transcript


class Shelf:
    """About `room` bytes of transcripts, and always the one used last."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._held: OrderedDict[str, tuple[Transcript, int]] = OrderedDict()
        self._size = 0

    def put(self, key: str, opened: Transcript) -> None:
        """It is used now; what was not used for longest makes room."""
        self.drop(key)
        self._held[key] = (opened, opened.size)
        self._size += opened.size
        while self._size > self._room and len(self._held) > 1:
            self.drop(next(iter(self._held)))

    def grown(self, key: str) -> None:
        """It has grown, and so it is being used."""
        if (held := self._held.get(key)) is not None:
            self.put(key, held[0])

    def drop(self, key: str) -> None:
        _, weight = self._held.pop(key, (None, 0))
        self._size -= weight

    def __len__(self) -> int:
        return len(self._held)
