"""One courier for each chat account, fed by the outbox, set going and held by the account's link."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from garra.core.errors import GarraError
from garra.core.value import frozen
from garra.domains.delivery.accounts import LinkKey, Setup
from garra.domains.delivery.courier import Courier, Route
from garra.domains.delivery.desk import Running
from garra.domains.delivery.links import Links
from garra.domains.delivery.media import Link, rewriting
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.pace import Pace
from garra.domains.delivery.replies import Read
from garra.domains.delivery.window import Stage
from garra.sdk.channel import Address, Channel, Limits, Outbound, Pulse, Receive
from garra.sdk.ports import Clock, Spawn, Task

log = logging.getLogger(__name__)


class Steady:
    """An account's channel, whichever object serves it now: a link made anew has a new one. `first` answers until then,
    and tells the platform's limits; what some channels have and others do not (`edit`, `react`) is found as theirs.
    """

    def __init__(self, first: Channel, now: Callable[[], Channel | None]) -> None:
        self._first, self._now = first, now
        self.limits: Limits = first.limits

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        await self._channel.run(receive, pulse)

    async def send(self, message: Outbound) -> str:
        return await self._channel.send(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    @property
    def _channel(self) -> Channel:
        return self._now() or self._first


@frozen
class Trade:
    """What couriers work with. `make` makes an account's channel without network, `read` makes documents of Markdown,
    `clean` blots secrets out, `refused` is told when a platform takes an account's credential no more, `link` says
    where a file can be had that is too large for it.
    """

    outbox: Outbox
    links: Links
    clock: Clock
    spawn: Spawn
    make: Callable[[Setup], Channel]
    read: Read
    clean: Callable[[str], str]
    refused: Callable[[LinkKey, str], None]
    link: Link = lambda _: None


@frozen
class _Post:
    channel: Steady
    pace: Pace
    courier: Courier
    work: Task


class Couriers:
    """All couriers of one process."""

    def __init__(self, trade: Trade) -> None:
        self._trade = trade
        self._posts: dict[LinkKey, _Post] = {}
        self._end = trade.links.subscribe(self._heard)

    def follow(self, setups: Iterable[Setup]) -> None:
        """Have a courier for each account that can run; call it before its link may come up."""
        wanted = {setup.key: setup for setup in setups if setup.enabled and setup.configured and not setup.fault}
        for key in [key for key in self._posts if key not in wanted]:
            post = self._posts.pop(key)
            self._trade.spawn(self._retire(post), f"courier {key} ends")
        for key, setup in wanted.items():
            if key not in self._posts:
                self._open(key, setup)

    def stage(self, address: Address) -> Stage | None:
        """What a preview in this chat works with; None where its account has no courier."""
        post, trade = self._post(address), self._trade
        if post is None:
            return None
        return Stage(post.channel, trade.outbox, post.pace, trade.clock, trade.spawn, trade.read, trade.clean)

    def limits(self, address: Address) -> Limits | None:
        """What the platform of this chat takes."""
        post = self._post(address)
        return post.channel.limits if post else None

    def channel(self, address: Address) -> Channel | None:
        """The channel of this chat."""
        post = self._post(address)
        return post.channel if post else None

    def running(self) -> list[Running]:
        """The accounts that send."""
        up = self._trade.links.up
        return [Running(key.channel, key.account, post.channel.limits, up(key)) for key, post in self._posts.items()]

    async def close(self) -> None:
        """Take nothing more in hand, and wait a little for what is with the platforms."""
        self._end()
        await asyncio.gather(*(self._retire(post) for post in self._posts.values()))

    def _open(self, key: LinkKey, setup: Setup) -> None:
        trade = self._trade
        try:
            channel = Steady(trade.make(setup), lambda: trade.links.channel(key))
        except GarraError as error:  # its link says so, too
            log.warning("%s: %s", key, error.message)
            return
        pace = Pace(channel.limits, trade.clock)
        route = Route(
            key.channel,
            key.account,
            trade.outbox,
            pace,
            trade.clock,
            trade.spawn,
            rewriting(channel.limits.file_out, trade.link),
            lambda reason: trade.refused(key, reason),
        )
        courier = Courier(channel, route)
        self._posts[key] = _Post(channel, pace, courier, trade.spawn(courier.run(), f"courier {key}"))
        if trade.links.up(key):
            courier.up()

    def _post(self, address: Address) -> _Post | None:
        return self._posts.get(LinkKey(address.channel, address.account))

    def _heard(self, key: LinkKey, up: bool) -> None:  # noqa: FBT001 - a listener's form
        post = self._posts.get(key)
        if post is not None:
            post.courier.up() if up else post.courier.down()

    async def _retire(self, post: _Post) -> None:
        await post.courier.close()
        post.work.cancel()
