"""Approvals for a command where no gateway runs: the same methods, on the stores themselves."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from garra.app.approvals import Asking, made
from garra.config.paths import Paths
from garra.core.errors import NotFound, UserError
from garra.core.frames import reword
from garra.domains.exec.approvals import Approvals
from garra.gateway.approvals import WHERE
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, APPROVALS, Client, Inside, Who
from garra.gateway.method import Caller as Called
from garra.gateway.methods import approvals
from garra.io.clock import SystemClock
from garra.io.files import atomic
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.runs.run import Run


class Alone:
    """As much of a `Host` as these methods use, without a gateway."""

    def __init__(self, paths: Paths, found: Approvals) -> None:
        self.paths, self.clock = paths, SystemClock()
        self.more: dict[str, Any] = {WHERE: found}


class Nothing:
    """No run is there."""

    def find(self, run_id: str) -> Run | None:
        return None


async def answer(paths: Paths, method: str, params: Mapping[str, Any]) -> Any:
    """What the gateway would answer. Raises UserError as its method does."""
    await asyncio.to_thread(atomic.folder, paths.state)
    db = Database(paths.db)
    try:
        async with Tasks() as spawn:
            asking = Asking(db, SystemClock(), spawn, lambda: str(uuid.uuid4()), Nothing)
            found = made(asking, None)
            await found.load()
            return await _called(cast(Host, Alone(paths, found)), method, params)
    finally:
        await db.close()


async def _called(host: Host, method: str, params: Mapping[str, Any]) -> Any:
    row = next((each for each in approvals.METHODS if each.name == method), None)
    if row is None or row.params is None:
        raise NotFound(f"there is no {method}")
    who = Who("inside", Client("cli", "cli"), scopes=frozenset((ADMIN, APPROVALS)), method="internal", loopback=True)
    try:
        parsed = msgspec.convert(dict(params), row.params)
    except msgspec.ValidationError as fault:
        raise UserError(f"invalid {method} params: {reword(str(fault))}") from None
    found = row.run(host, Called(Inside(who), "inside"), parsed)
    return await found if hasattr(found, "__await__") else found
