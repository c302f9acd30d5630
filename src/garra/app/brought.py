"""What plugins bring into the house, and what they are handed for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from garra.config.live import Live
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core.value import frozen
from garra.domains.exec.boxes import chore_by, probe_by
from garra.domains.models import catalog
from garra.domains.models.children import Children
from garra.domains.models.registry import Models
from garra.domains.models.weights import LocalWeights
from garra.domains.plugins import known
from garra.domains.plugins.registry import Registry
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.http.door import GuardedHttp
from garra.io.process.door import Programs, compile_once
from garra.io.tasks import Tasks
from garra.sdk.provider import Provider
from garra.sdk.tool import Tool

_CREDENTIALS: Final = 1 << 20
"""Bytes of a file of credentials that are read at most."""


@frozen
class Doors:
    """The doors to programs, to the network, and to model files."""

    programs: Programs
    http: GuardedHttp
    weights: LocalWeights


class Machine:
    """`sdk.cloud.Cloud`: what clouds' tools left on this machine."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def setting(self, *names: str) -> str:
        return next((value for name in names if (value := self._env.get(name))), "")

    async def file(self, path: str) -> bytes | None:
        home = self._env.get("HOME", "")
        return await asyncio.to_thread(_read, Path(home, path[2:]) if path.startswith("~/") else Path(path))


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(_CREDENTIALS)
    except OSError:
        return None


def ports(paths: Paths, env: Environment, spawn: Tasks, doors: Doors) -> dict[str, Any]:
    """What plugins may ask for, by name."""
    programs, http = doors.programs, doors.http
    return {
        "http": http,
        "spawn": spawn,
        "clock": SystemClock(),
        "probe": probe_by(programs),
        "chore": chore_by(programs),
        "compiled": compile_once,
        "engine": env,
        "children": Children(programs, env, str(paths.state)),
        "weights": doors.weights,
        "cloud": Machine(env),
    }


def plugins(paths: Paths, live: Live, handed: Mapping[str, Any]) -> Registry:
    """Find the plugins. Blocks: reads manifests."""
    registry = Registry(handed)
    known.scan(registry, paths, live.config)
    return registry


def providers(found: Registry) -> tuple[Provider, ...]:
    """The providers in the box and those that plugins bring. Blocks: reads files."""
    return (*catalog.shipped(), *known.providers(found.of("provider")))


class Brought:
    """The tools and providers of the plugins that are on; a plugin switched on while the program runs is taken up."""

    def __init__(self, plugins: Registry, models: Models, now: list[Tool]) -> None:
        self.now = now
        self._plugins, self._models = plugins, models

    def follow(self, old: Config, new: Config, paths: Paths, spawn: Tasks) -> None:
        if old.plugins != new.plugins:
            spawn(self._again(paths, new), "plugins")

    async def _again(self, paths: Paths, config: Config) -> None:
        await asyncio.to_thread(known.scan, self._plugins, paths, config)
        self.now = await asyncio.to_thread(self._plugins.tools)
        self._models.know(await asyncio.to_thread(providers, self._plugins))
