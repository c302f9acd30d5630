"""What was spent, for a command where no gateway runs: the same report, on the ledger itself."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from garra.app import offline
from garra.app.spending import Zone
from garra.config.live import Live
from garra.config.load import load
from garra.config.paths import Paths
from garra.domains.sessions.store import Sessions
from garra.domains.spending.ledger import Ledger
from garra.gateway import work
from garra.gateway.host import Host
from garra.gateway.method import READ, inside
from garra.gateway.methods import usage
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.tasks import Tasks


class Alone:
    """As much of a `Host` as the report uses, without a gateway."""

    def __init__(self, ledger: Ledger, sessions: Sessions, clock: SystemClock) -> None:
        self.clock, self.sessions = clock, sessions
        self.more: dict[str, Any] = {work.LEDGER: ledger}


async def report(paths: Paths, env: Environment, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the gateway would answer to `usage.report`."""
    live = Live(paths, env, await asyncio.to_thread(load, paths, env))
    clock = SystemClock()
    async with offline.opened(paths) as db, Tasks() as spawn:
        sessions = Sessions(db, paths.agents, clock, lambda: str(uuid.uuid4()))
        try:
            await sessions.open()
            zone = Zone(live, spawn)
            await zone.read()
            ledger = Ledger(db, clock, lambda: zone.now)
            await ledger.load()
            host = cast(Host, Alone(ledger, sessions, clock))
            return await usage.report(host, inside((READ,)), msgspec.convert(dict(params), usage.UsageReport))
        finally:
            await sessions.close()
