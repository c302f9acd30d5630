"""What was said in groups since the agent last spoke there: in memory, and on disk for the next start."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Final, Protocol

import msgspec

from garra.core import groups
from garra.core.errors import GarraError
from garra.core.groups import History, Line, Said, Taken

log = logging.getLogger(__name__)

KEPT: Final = 500
"""Groups kept in memory."""


class Shelf(Protocol):
    """Small values on disk, by name."""

    async def get(self, key: str) -> object: ...

    async def set(self, key: str, value: object, *, durable: bool = False) -> None: ...

    async def remove(self, key: str, *, durable: bool = False) -> bool: ...


class Histories:
    """By group and thread."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._kept: OrderedDict[str, History] = OrderedDict()

    async def note(self, place: str, line: Line, limit: int) -> None:
        """Somebody said something that starts no turn. Where the store refuses it may be noted again, and is once."""
        if limit <= 0:
            return
        known = await self._of(place)
        if not line.message or all(line.message != each.message for each in known.lines):
            self._kept[place], _ = groups.step(known, Said(line, limit))
        await self._shelf.set(place, msgspec.to_builtins(self._kept[place].lines))

    async def peek(self, place: str) -> tuple[Line, ...]:
        """What the next turn is told; it stays until `clear`."""
        return (await self._of(place)).lines

    async def clear(self, place: str) -> None:
        """A turn has it now. Never raises: the turn goes on, and at worst the next start tells it again."""
        try:
            self._kept[place], gone = groups.step(await self._of(place), Taken())
            if gone:
                await self._shelf.remove(place)
        except GarraError as error:
            log.warning("what was said in a group stays on the disk: %s", error.message)

    async def _of(self, place: str) -> History:
        found = self._kept.get(place)
        if found is None:
            stored = await self._shelf.get(place)
            lines = msgspec.convert(stored, tuple[Line, ...]) if stored else ()
            found = self._kept.setdefault(place, History(lines))
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(place)
        return found
