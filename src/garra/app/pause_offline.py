"""The end of a pause, for a command where no gateway runs."""

from __future__ import annotations

from garra.app import offline
from garra.config.paths import Paths
from garra.io.store.shelf import Shelf
from garra.runs.switch import KEY, SHELF, held


async def resume(paths: Paths) -> bool:
    """Whether work was paused, and may begin again now."""
    async with offline.opened(paths) as db:
        shelf = Shelf(db, SHELF)
        was = bool(await held(shelf))
        await shelf.remove(KEY, durable=True)
        return was
