"""Names for files of conversations: what came with a message, and what a tool took from outside.

A name leads to its file in the conversations it was given in and nowhere else, after a restart too, for as long as the
media folder keeps the file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any, Final, Literal

from garra.core.errors import GarraError, NotFound, ToolFailed
from garra.core.lineage import Left
from garra.core.value import frozen
from garra.domains.delivery.media import Kept, MediaRoot
from garra.io.store.shelf import Shelf

SPACE: Final = "media-handles"
"""Where they stand in the store."""
START: Final = "media://"
Origin = Literal["in", "tools"]


@frozen
class Held:
    """A file that a name led to."""

    name: str
    mime: str
    data: bytes


class Handles:
    """`shelf` is `SPACE` of the store."""

    def __init__(self, shelf: Shelf, media: MediaRoot) -> None:
        self._shelf, self._media = shelf, media

    async def give(self, origin: Origin, sessions: Sequence[str], kept: Kept) -> str:
        """A new name for `kept` in `sessions`, such as `media://in/1f0c…`. Raises Unavailable."""
        handle = f"{START}{origin}/{os.urandom(8).hex()}"
        row = {"sessions": list(sessions), "path": kept.path, "name": kept.name, "mime": kept.mime}
        await self._shelf.set(handle, row)
        return handle

    async def share(self, handle: str, session: str, other: str) -> Left:
        """Let a name of `session` lead to its file in `other` too. Raises ToolFailed for one that is none of it."""
        row = await self._shelf.get(handle)
        if row is None or session not in row["sessions"]:
            raise ToolFailed(f"there is no file {handle[:100]} in this conversation")
        if other not in row["sessions"]:
            await self._shelf.set(handle, {**row, "sessions": [*row["sessions"], other]})
        return Left(row["name"], handle, row["mime"], handle)

    async def read(self, session: str, handle: str, limit: int) -> Held:
        """At most `limit` bytes. Raises ToolFailed for a name that is not one of this conversation's, and for what is
        larger or gone.
        """
        row = await self._shelf.get(handle)
        if row is None or session not in row["sessions"]:
            raise ToolFailed(f"there is no file {handle[:100]} in this conversation")
        try:
            path = await self._media.path(row["path"])
            if (await asyncio.to_thread(path.stat)).st_size > limit:
                raise ToolFailed(f"{handle} is larger than {limit} bytes")
            return Held(row["name"], row["mime"], await asyncio.to_thread(path.read_bytes))
        except NotFound:
            raise ToolFailed(f"{handle} is no longer kept") from None
        except (GarraError, OSError) as error:
            raise ToolFailed(str(error)) from None

    async def sweep(self) -> int:
        """Forget the names of files that are gone; how many."""
        rows: dict[str, Any] = await self._shelf.items()
        gone = [handle for handle, row in rows.items() if not await self._there(row["path"])]
        for handle in gone:
            await self._shelf.remove(handle)
        return len(gone)

    async def _there(self, relative: str) -> bool:
        try:
            await self._media.path(relative)
        except NotFound:
            return False
        return True
