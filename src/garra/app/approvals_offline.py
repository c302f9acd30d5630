"""Approvals for a command where no gateway runs: the same methods, on the stores themselves."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, cast

from garra.app import offline
from garra.app.approvals import Asking, made
from garra.config.paths import Paths
from garra.domains.exec.approvals import Approvals
from garra.gateway.approvals import WHERE
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, APPROVALS
from garra.gateway.methods import approvals
from garra.io.clock import SystemClock
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
    async with offline.opened(paths) as db, Tasks() as spawn:
        asking = Asking(db, SystemClock(), spawn, lambda: str(uuid.uuid4()), Nothing)
        found = made(asking, None)
        await found.load()
        host = cast(Host, Alone(paths, found))
        return await offline.called(host, approvals.METHODS, (ADMIN, APPROVALS), method=method, params=params)
