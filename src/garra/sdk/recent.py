"""What is kept in memory only so that it need not be made again: of what was used last, so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

LARGE: Final = 4
"""What takes more than this part of the room is large."""

BROAD: Final = 3
"""So many times the room is there for what is large: it costs the most to make again, and there are few of it."""


class Recent(Generic[K, V]):
    """About `room` bytes of small values, and a few large ones beside them, so that neither kind drives out the other.
    The value used last is always kept.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._small: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._large: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._sizes = [0, 0]

    def __len__(self) -> int:
        return len(self._small) + len(self._large)

    def get(self, key: K) -> V | None:
        """The value; this alone is no use of it."""
        held = self._small.get(key) or self._large.get(key)
        return held[0] if held else None

    def put(self, key: K, value: V, size: int) -> None:
        """It is used now, and takes `size` bytes; what was not used for longest makes room."""
        self.pop(key)
        large = size > self._room // LARGE
        shelf, room = (self._large, self._room * BROAD) if large else (self._small, self._room)
        shelf[key] = (value, size)
        self._sizes[large] += size
        while self._sizes[large] > room and len(shelf) > 1:
            self._drop(shelf, next(iter(shelf)), large=large)

    def pop(self, key: K) -> V | None:
        """Take it out."""
        if key in self._small:
            return self._drop(self._small, key, large=False)
        return self._drop(self._large, key, large=True) if key in self._large else None

    def _drop(self, shelf: OrderedDict[K, tuple[V, int]], key: K, *, large: bool) -> V:
        value, size = shelf.pop(key)
        self._sizes[large] -= size
        return value
