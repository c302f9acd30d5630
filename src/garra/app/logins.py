"""The logins of model providers: where they are kept, who renews them. What renews loads when one has to be renewed."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from garra.config.live import Live
from garra.config.paths import Paths
from garra.core.profiles import Profile
from garra.core.value import frozen
from garra.domains.models.logins import Logins, Look
from garra.io.store.db import Database
from garra.sdk.ports import Clock, Http, Spawn

if TYPE_CHECKING:
    from garra.domains.models.discovery import Asking, Discovery
    from garra.domains.models.refresh import Renewals
    from garra.domains.models.registry import Models


def looks(paths: Paths, live: Live) -> Look:
    """Looks up a secret by the configuration's own sources, as they are now."""

    def look(source: str, provider: str, name: str) -> str:
        module = importlib.import_module("garra.config.references")
        found: str = module.References(paths, live.snapshot.env, live.snapshot.merged).look(source, provider, name)
        return found

    return look


LOOK_S: Final = 10.0


@frozen
class Ground:
    """What they stand on. `env` is the environment, `catalog` the file of what servers offer, `look` looks up what a
    key refers to.
    """

    db: Database
    clock: Clock
    spawn: Spawn
    http: Http
    agents: Path
    locks: Path
    env: Callable[[], Mapping[str, str]]
    catalog: Path
    models: Callable[[], Models]
    look: Look


class Keeper:
    """The logins and their refresher. Close it before the tasks and the network."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._renewals: Renewals | None = None
        self._discovery: Discovery | None = None
        self._looked: float | None = None
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

    @property
    def models(self) -> Models:
        return self._ground.models()

    async def ready(self, ref: str, agent: str = "") -> None:
        """Before a turn of a model: what its provider's server says of it is known."""
        entry = self.models.entries().get(ref.partition("/")[0])
        asked = entry is not None and entry.provider.catalog
        if self._discovery is None and not asked and not await self._listed():
            return
        await (await self._discovered()).ready(ref, agent)

    async def _listed(self) -> bool:
        """Whether servers ever told what they have, as of some seconds ago."""
        now = self._ground.clock.monotonic()
        if self._looked is not None and now - self._looked < LOOK_S:
            return False
        self._looked = now
        return await asyncio.to_thread(self._ground.catalog.exists)

    async def refresh(self, only: str = "") -> list[Asking]:
        """Ask the servers of providers which models they have, all or one."""
        return await (await self._discovered()).refresh(only and self.models.provider(only))

    async def _discovered(self) -> Discovery:
        if self._discovery is None:
            made = (await asyncio.to_thread(_module, "discovery")).Discovery
            ground = self._ground
            self._discovery = self._discovery or made(ground.models(), ground.http, ground.clock, ground.catalog)
        return self._discovery

    async def close(self) -> None:
        if self._renewals is not None:
            await self._renewals.close()


def _renewals(ground: Ground, logins: Logins) -> Renewals:
    refresh, ways = _module("refresh"), _module("ways")

    def issuer(profile: Profile) -> Any:
        entry = ways.known(ground.models().entries(), profile.provider)
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
