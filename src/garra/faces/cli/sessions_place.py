"""The conversations of this installation, for commands that work without a gateway, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from garra.client import quick
from garra.core import keys
from garra.core.errors import NotFound
from garra.domains.sessions.store import Sessions
from garra.faces.cli.place import Place
from garra.io.clock import SystemClock
from garra.io.store.db import Database


@asynccontextmanager
async def store(place: Place) -> AsyncIterator[Sessions]:
    """The sessions of this installation. Raises NotFound where there is none yet, so that looking makes nothing."""
    if not (await asyncio.to_thread(place.paths.agents.exists)):
        raise NotFound(f"there are no sessions in {place.paths.state} yet: talk to an agent first (garra)")
    db = Database(place.paths.db)
    sessions = Sessions(db, place.paths.agents, SystemClock(), quick.fresh)
    try:
        yield sessions
    finally:
        await sessions.close()
        await db.close()


def key_of(place: Place, text: str, agent: str) -> str:
    return keys.canonical(text, agent, main_of(place))


def main_of(place: Place) -> str:
    chosen = place.config.get("session")
    name = chosen.get("mainKey") if isinstance(chosen, dict) else None
    return name if isinstance(name, str) and name else "main"


async def asked(place: Place, method: str, params: Mapping[str, Any], scope: str) -> Any:
    """What the gateway answers; None where none runs, for then the conversations are this command's own."""
    if await asyncio.to_thread(lambda: place.holder) is None:
        return None
    return await asyncio.to_thread(lambda: quick.call(place.target(), method, params, scopes=(scope,)))
