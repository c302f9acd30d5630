"""All links of one process: which accounts run, and how each of them fares."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from garra.core.errors import NotFound, UserError
from garra.domains.delivery.accounts import DEFAULT, LinkKey, Setup
from garra.domains.delivery.link import Doors, Link, LinkStatus, Patience
from garra.sdk.channel import Channel, Receive

Listener = Callable[[LinkKey, bool], None]
"""Called with an account and whether its link is up now; up: who the bot is was told, so that sending may begin."""


class Links:
    """Supervises every account. `doors` are the host's; see `link.Patience` for what is waited how long."""

    def __init__(self, doors: Doors, patience: Patience | None = None) -> None:
        self._doors, self._patience = doors, patience or Patience()
        self._links: dict[LinkKey, Link] = {}
        self._up: set[LinkKey] = set()
        self._held: set[LinkKey] = set()
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` whenever a link comes up or goes down. Gives what ends it."""
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    async def apply(self, wanted: Iterable[Setup]) -> None:
        """Make the links those that are configured: new ones start, changed ones start again, the rest stay as they
        are. What was stopped by hand stays stopped until it is started by hand, or configured otherwise."""
        setups = {setup.key: setup for setup in wanted}
        for key in [key for key in self._links if key not in setups]:
            await self._links.pop(key).stop()
            self._held.discard(key)
        for key, setup in setups.items():
            await self._put(key, setup)

    async def _put(self, key: LinkKey, setup: Setup) -> None:
        before = self._links.get(key)
        if before is not None and before.setup.transport == setup.transport:
            before.setup = setup
            return
        if before is not None:
            await before.stop()
            self._held.discard(key)
        link = self._links[key] = Link(setup, self._doors, self._patience, self._changed)
        if setup.enabled and setup.configured:
            link.start()

    def start(self, channel: str, account: str = DEFAULT) -> LinkStatus:
        """Start an account by hand. Raises NotFound, or UserError for one that cannot be started."""
        link = self._one(channel, account)
        if not link.setup.enabled:
            raise UserError(f"{link.setup.key} is off; set channels.{channel}.enabled (and the account's) to true")
        if link.setup.fault:
            raise UserError(f"{link.setup.key} cannot be started: {link.setup.fault}")
        self._held.discard(link.setup.key)
        link.start()
        return link.status()

    async def stop(self, channel: str, account: str = DEFAULT) -> LinkStatus:
        """Stop an account by hand; it stays so until it is started, or the program is. Raises NotFound."""
        link = self._one(channel, account)
        self._held.add(link.setup.key)
        await link.stop()
        return link.status()

    def held(self, key: LinkKey) -> bool:
        """Whether it was stopped by hand."""
        return key in self._held

    def accounts(self) -> list[LinkKey]:
        return list(self._links)

    def status(self) -> list[LinkStatus]:
        """Every account, as configured."""
        return [link.status() for link in self._links.values()]

    def setup(self, key: LinkKey) -> Setup | None:
        link = self._links.get(key)
        return link.setup if link else None

    def inspect(self, channel: str, account: str = DEFAULT) -> Mapping[str, Any]:
        """What the channel knows of an account, without network. Raises NotFound."""
        return self._one(channel, account).probe()

    def channel(self, key: LinkKey) -> Channel | None:
        """The channel that serves an account now. Ask for each send: a link made anew has a new one."""
        link = self._links.get(key)
        return link.channel if link else None

    def bot(self, key: LinkKey) -> str:
        """Who an account is on its platform; empty until it has connected."""
        link = self._links.get(key)
        return link.me.id if link is not None and link.me is not None else ""

    def up(self, key: LinkKey) -> bool:
        """Whether something can be sent by it now."""
        link = self._links.get(key)
        return link is not None and link.up

    def hook(self, path: str) -> tuple[Any, Receive] | None:
        """The running channel that is called at `path` of the HTTP side (`sdk.channel.Hooked`), and its receive."""
        for link in self._links.values():
            if link.running and path and getattr(link.channel, "path", "") == path:
                return link.channel, link.receiving()
        return None

    async def close(self) -> None:
        """Stop them all."""
        await asyncio.gather(*(link.stop() for link in self._links.values()))
        self._listeners.clear()

    def _one(self, channel: str, account: str) -> Link:
        link = self._links.get(LinkKey(channel, account))
        if link is None:
            known = ", ".join(str(key) for key in self._links) or "none; add one with: garra channels add telegram"
            raise NotFound(f"there is no account {channel}/{account}; there is {known}")
        return link

    def _changed(self, link: Link) -> None:
        key = link.setup.key
        if link.up != (key in self._up):
            (self._up.add if link.up else self._up.discard)(key)
            for listener in tuple(self._listeners):
                listener(key, link.up)
