"""What the commands under `garra models` work with: the registry, the logins, the doors."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from garra.config.load import Snapshot, load
from garra.config.references import References
from garra.core import dotted
from garra.core.errors import NotFound
from garra.core.value import frozen
from garra.domains.models import borrowed, catalog
from garra.domains.models.call import Ports
from garra.domains.models.logins import Kept, Logins
from garra.domains.models.registry import Models
from garra.domains.plugins import known
from garra.faces.cli.place import Place
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.sdk.model import Api
from garra.sdk.ports import Via
from garra.sdk.provider import Provider


@frozen
class Desk:
    """`kept` is what was kept when the command began."""

    place: Place
    snapshot: Snapshot
    models: Models
    logins: Logins
    kept: Kept
    http: GuardedHttp
    clock: SystemClock
    tasks: Tasks


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[Desk]:
    """All of it, until the block ends. No database is made by looking."""
    ground = await asyncio.to_thread(_read, place)
    snapshot, clock, http = ground.snapshot, SystemClock(), door(place, ground.snapshot)
    db = Database(place.paths.db)
    look = References(place.paths, snapshot.env, snapshot.merged).look
    logins = Logins(db, clock, place.paths.agents, lambda: borrowed.found(snapshot.env), look=look)
    async with Tasks() as tasks:
        ports = Ports(no_api, lambda: snapshot.env, tasks, clock, logins=logins)
        models = Models(lambda: snapshot.config, ports, ground.providers)
        try:
            kept = await models.profiles.read()
            desk = Desk(place, snapshot, models, logins, kept, http, clock, tasks)
            if ground.listed:
                await discovery(desk).load()
            yield desk
        finally:
            await db.close()
            await http.close()


@frozen
class _Ground:
    """What is read before anything is made. `listed`: servers told what they have."""

    snapshot: Snapshot
    providers: tuple[Provider, ...]
    listed: bool


def _read(place: Place) -> _Ground:
    snapshot = load(place.paths, place.env)
    return _Ground(snapshot, providers(place, snapshot), catalog_file(place).exists())


def discovery(desk: Desk) -> Any:
    """What asks servers for their models; loaded when somebody does."""
    made = importlib.import_module("garra.domains.models.discovery").Discovery
    return made(desk.models, desk.http, desk.clock, catalog_file(desk.place))


async def refreshed(desk: Desk, only: str = "") -> list[Any]:
    """Ask the servers of providers which models they have; how each went."""
    found: list[Any] = await discovery(desk).refresh(desk.models.provider(only) if only else "")
    return found


def catalog_file(place: Place) -> Path:
    return folder(place) / "catalog.json"


def renewed(desk: Desk, kept: Kept) -> Desk:
    """The same with what is kept now."""
    return replace(desk, kept=kept)


def providers(place: Place, snapshot: Snapshot) -> tuple[Provider, ...]:
    return (*catalog.shipped(), *known.brought(place.paths, snapshot.config))


def registry(snapshot: Snapshot, place: Place) -> Models:
    """The models as configuration and environment have them; no logins that are kept."""
    ports = Ports(no_api, lambda: snapshot.env, Tasks(), SystemClock())
    return Models(lambda: snapshot.config, ports, providers(place, snapshot))


def door(place: Place, snapshot: Snapshot | None = None) -> GuardedHttp:
    config = (snapshot or load(place.paths, place.env)).config
    return GuardedHttp(Via(config.proxy_url or None, config.ca_file or None))


def folder(place: Place) -> Path:
    return place.paths.state / "models"


def told(snapshot: Snapshot, where: str) -> Any:
    """What stands at a path of the file itself; None where nothing does."""
    value: Any = snapshot.parsed
    for part in dotted.parse(where):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def no_api(family: str) -> Api:
    raise NotFound(f"the family {family} is not loaded here")
