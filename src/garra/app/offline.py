"""What commands do where no gateway runs: the same methods, on the stores themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from garra.config.paths import Paths
from garra.core.errors import NotFound, UserError
from garra.core.frames import reword
from garra.gateway.host import Host
from garra.gateway.method import Method, inside
from garra.io.files import atomic
from garra.io.store.db import Database


@asynccontextmanager
async def opened(paths: Paths) -> AsyncIterator[Database]:
    """The state, for as long as this lasts."""
    await asyncio.to_thread(atomic.folder, paths.state)
    db = Database(paths.db)
    try:
        yield db
    finally:
        await db.close()


async def called(
    host: Host, methods: Sequence[Method], scopes: Sequence[str], *, method: str, params: Mapping[str, Any]
) -> Any:
    """What the gateway would answer. Raises UserError as its method does."""
    row = next((each for each in methods if each.name == method), None)
    if row is None or row.params is None:
        raise NotFound(f"there is no {method}")
    try:
        parsed = msgspec.convert(dict(params), row.params)
    except msgspec.ValidationError as fault:
        raise UserError(f"invalid {method} params: {reword(str(fault))}") from None
    found = row.run(host, inside(tuple(scopes), "cli"), parsed)
    return await found if hasattr(found, "__await__") else found
