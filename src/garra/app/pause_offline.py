"""The end of a pause, for a command where no gateway runs."""

from __future__ import annotations

import asyncio

from garra.config.paths import Paths
from garra.io.files import atomic
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.runs.switch import KEY, SHELF, held


async def resume(paths: Paths) -> bool:
    """Whether work was paused, and may begin again now."""
    await asyncio.to_thread(atomic.folder, paths.state)
    db = Database(paths.db)
    try:
        shelf = Shelf(db, SHELF)
        was = bool(await held(shelf))
        await shelf.remove(KEY, durable=True)
        return was
    finally:
        await db.close()
