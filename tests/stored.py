"""A real store for tests that need one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from garra.io.store.db import Database


@asynccontextmanager
async def stored(folder: Path) -> AsyncIterator[Database]:
    db = Database(folder / "state.db")
    await db.open()
    try:
        yield db
    finally:
        await db.close()
