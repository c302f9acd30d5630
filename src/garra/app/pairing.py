"""The register of pairings for a command where no gateway runs: the same methods, on the stores themselves."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any, cast

from garra.app import offline
from garra.config.live import Live
from garra.config.load import load
from garra.config.paths import Paths
from garra.domains.access.pairing import Pairing
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, PAIRING
from garra.gateway.methods import pairing
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.store.shelf import Shelf


class Alone:
    """As much of a `Host` as these methods use, without a gateway."""

    def __init__(self, live: Live, register: Pairing) -> None:
        self._live = live
        self.more: dict[str, Any] = {pairing.WHERE: register}

    @property
    def config(self) -> Any:
        return self._live.config

    async def put(self, path: str, value: Any) -> Any:
        """Put a value into the configuration file."""
        return await self._live.change(lambda writer: writer.set(path, value))


async def answer(paths: Paths, env: Environment, method: str, params: Mapping[str, Any]) -> Any:
    """What the gateway would answer. Raises UserError as its method does."""
    live = Live(paths, env, await asyncio.to_thread(load, paths, env))
    async with offline.opened(paths) as db:
        register = Pairing(lambda name: Shelf(db, name), SystemClock(), secrets.randbelow)
        await register.load()
        host = cast(Host, Alone(live, register))
        return await offline.called(host, pairing.METHODS, (ADMIN, PAIRING), method=method, params=params)
