"""The logins of model providers: where they are kept, who renews them. What renews loads when one has to be renewed."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from garra.config.live import Live
from garra.config.paths import Paths
from garra.core.profiles import Profile
from garra.core.value import frozen
from garra.domains.models.logins import Logins, Look
from garra.io.store.db import Database
from garra.sdk.ports import Clock, Http, Spawn

if TYPE_CHECKING:
    from garra.domains.models.catalog import Entry
    from garra.domains.models.refresh import Renewals


def looks(paths: Paths, live: Live) -> Look:
    """Looks up a secret by the configuration's own sources, as they are now."""

    def look(source: str, provider: str, name: str) -> str:
        module = importlib.import_module("garra.config.references")
        found: str = module.References(paths, live.snapshot.env, live.snapshot.merged).look(source, provider, name)
        return found

    return look


@frozen
class Ground:
    """What they stand on. `entries` are the providers in force, `env` the environment, `look` looks up what a key
    refers to."""

    db: Database
    clock: Clock
    spawn: Spawn
    http: Http
    agents: Path
    locks: Path
    env: Callable[[], Mapping[str, str]]
    entries: Callable[[], Mapping[str, Entry]]
    look: Look


class Keeper:
    """The logins and their refresher. Close it before the tasks and the network."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._renewals: Renewals | None = None
        self.logins = Logins(ground.db, ground.clock, ground.agents, self._borrowed, look=ground.look)

    def _borrowed(self) -> Iterable[Profile]:
        found: Iterable[Profile] = _module("borrowed").found(self._ground.env())
        return found

    async def fresh(self, profile: Profile) -> Profile:
        """As `domains.models.refresh.Refresher`."""
        if self._renewals is None:
            await asyncio.to_thread(_load)
            self._renewals = self._renewals or _renewals(self._ground, self.logins)
        return await self._renewals.fresh(profile)

    async def close(self) -> None:
        if self._renewals is not None:
            await self._renewals.close()


def _renewals(ground: Ground, logins: Logins) -> Renewals:
    refresh, ways = _module("refresh"), _module("ways")

    def issuer(profile: Profile) -> Any:
        entry = ways.known(ground.entries(), profile.provider)
        return ways.issuer(entry, profile), entry.via

    sources = refresh.Sources(issuer, lambda profile: _module("borrowed").again(profile, ground.env()))
    ask = _module("oauth").OAuth(ground.http, ground.clock, ground.spawn).ask
    made: Renewals = refresh.Renewals(logins, ask, ground.clock, ground.spawn, locks=ground.locks, sources=sources)
    return made


def _load() -> None:
    for name in ("refresh", "ways", "oauth", "borrowed"):
        _module(name)


def _module(name: str) -> Any:
    return importlib.import_module(f"garra.domains.models.{name}")
