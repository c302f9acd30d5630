"""The web as tools reach it: as `sdk.web.Web`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from garra.config.sections import Config
from garra.core.errors import Unavailable
from garra.core.hosts import Hosts
from garra.core.policy import Layer
from garra.domains.web import settings
from garra.io.http.bound import Binding
from garra.io.http.outside import Outside, origin
from garra.sdk.ports import Via
from garra.sdk.searcher import Searcher
from garra.sdk.web import Fetching, Searching, Visit, Visited


class Web:
    """One for the house; what the configuration says is read anew for each call."""

    def __init__(
        self,
        config: Callable[[], Config],
        env: Callable[[], Mapping[str, str]],
        known: tuple[Searcher, ...],
        via: Callable[[], Via],
        *,
        bound: Binding = lambda: (),
    ) -> None:
        self._config, self._env, self._known = config, env, known
        self._pages = Outside(lambda: settings.hosts(config().tools.web.fetch.ssrf_policy), via, bound)
        self._searches = Outside(self._searchers, via, bound)
        self._switched: tuple[Config, Mapping[str, str], tuple[Layer, ...]] | None = None

    def fetching(self) -> Fetching:
        return settings.fetching(self._config())

    def searching(self) -> Searching:
        return settings.searching(self._config(), self._env(), self._known)

    @asynccontextmanager
    async def open(self, visit: Visit, searcher: str = "") -> AsyncIterator[Visited]:
        """As `sdk.web.Web`."""
        if not searcher:
            headers = {**settings.added(self._config()), **visit.headers}
            async with self._pages.open(replace(visit, headers=headers, key=None)) as answer:
                yield answer
            return
        async with self._searches.open(self._with_key(visit, searcher)) as answer:
            yield answer

    def _with_key(self, visit: Visit, name: str) -> Visit:
        """Its key goes to its own origin alone."""
        for each in settings.keyed(self._config(), self._env(), self._known):
            if each.searcher.id == name:
                if origin(each.searcher.url) != origin(visit.url):
                    break
                if visit.key is None or each.key is None:
                    return visit
                header, form = visit.key
                return replace(visit, headers={**visit.headers, header: form.format(key=each.key.reveal())})
        raise Unavailable(f"{name} is not asked at that address", details={"kind": "refused"})

    def _searchers(self) -> Hosts:
        """The owner named these hosts himself: they may stand in his own network."""
        able = settings.keyed(self._config(), self._env(), self._known)
        return Hosts(tuple(origin(each.searcher.url)[1] for each in able))

    def switches(self) -> tuple[Layer, ...]:
        """What is not offered: switched off, or without what it needs. What is looked at is new where it changed."""
        now = (self._config(), self._env())
        if self._switched is None or self._switched[0] is not now[0] or self._switched[1] is not now[1]:
            self._switched = (*now, settings.switches(*now, self._known))
        return self._switched[2]

    async def close(self) -> None:
        await self._pages.close()
        await self._searches.close()
