"""Which agents answer a place, remembered: 4,000 places, forgotten when the configuration changes."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from garra.config.sections import Config
from garra.config.sections.channels import default_account
from garra.core import routing
from garra.core.crowds import Crowd, crowd, faults
from garra.core.ids import AgentId
from garra.core.routing import Binding, Route, Settings, Spot
from garra.core.value import frozen
from garra.sdk.channel import Address, Inbound
from garra.turns.mentions import Mentions

log = logging.getLogger(__name__)

KEPT: Final = 4_000


def spot(event: Inbound) -> Spot:
    """Where an event comes from, as routing sees it."""
    address = event.address
    return Spot(
        address.channel,
        address.account,
        address.kind,
        event.sender.id if address.kind == "direct" else address.chat,
        address.thread,
        address.parent,
        address.guild,
        address.team,
        tuple(sorted(address.roles)),
    )


def lane(address: Address) -> tuple[str, ...]:
    """What is taken strictly in the order it came: one chat, one thread of it."""
    return address.channel, address.account, address.chat, address.thread


@frozen
class _Rules:
    rows: Sequence[Binding]
    settings: Settings


class Routes:
    """The routes in force. A binding to an agent that does not exist leads to the default one."""

    def __init__(self, config: Callable[[], Config]) -> None:
        self._config = config
        self._of: Config | None = None
        self._rules = _Rules((), Settings())
        self._kept: OrderedDict[Spot, tuple[Route, Crowd]] = OrderedDict()
        self._mentions = Mentions()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, place: Spot) -> Route:
        """The one agent that answers a place."""
        return self._both(place)[0]

    def all(self, place: Spot, text: str) -> tuple[Route, ...]:
        """Every agent that answers these words: one, but in a broadcast group those it names, or all."""
        route, found = self._both(place)
        if not found.agents:
            return (route,)
        config = self._config()
        named = found.called(lambda agent: self._mentions.explicit(config, agent, text))
        return tuple(self.of(place, agent) for agent in named)

    def of(self, place: Spot, agent: AgentId) -> Route:
        """The way to one agent of a broadcast group."""
        route, settings = self._both(place)[0], self._rules.settings
        key = routing.session(agent, place, settings, route.scope, groups=settings.group_scope)
        return replace(route, agent=agent, key=key, level="broadcast")

    def crowd(self, place: Spot) -> Crowd:
        """The agents of a broadcast group, none elsewhere."""
        return self._both(place)[1]

    def _both(self, place: Spot) -> tuple[Route, Crowd]:
        config = self._config()
        if config is not self._of:
            self._of = config
            self._rules = rules(config)
            for line in faults(config.broadcast, config.agents.ids()):
                log.warning("%s", line)
            self._kept.clear()
        found = self._kept.get(place)
        if found is None:
            route = routing.route(self._rules.rows, place, self._rules.settings)
            known = config.agents.ids()
            found = self._kept[place] = route, crowd(config.broadcast, place).known(known)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(place)
        return found


def rules(config: Config) -> _Rules:
    """Bindings and scopes as the configuration has them."""
    known = config.agents.ids()
    session = config.session
    settings = Settings(
        config.agents.default_id(),
        session.dm_scope,
        session.group_scope,
        session.main_key,
        session.identity_links,
        {name: default_account(channel) for name, channel in config.channels.items()},
    )
    return _Rules(tuple(row for row in routing.bindings(config.bindings) if row.agent in known), settings)
