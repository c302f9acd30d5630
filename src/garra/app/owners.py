"""Where the owner hears of what went wrong, found from pairings, allowlists and `commands.ownerAllowFrom`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence

from garra.config.sections import Config
from garra.core import keys, notices
from garra.core.errors import GarraError
from garra.core.notices import Reach
from garra.core.value import frozen
from garra.domains.access.allowlist import Accounts
from garra.domains.access.pairing import Pairing
from garra.domains.delivery.desk import Running
from garra.sdk.channel import Address, Channel

log = logging.getLogger(__name__)


@frozen
class Owners:
    """`running` are the accounts that send, `channel` gives the channel of an address."""

    config: Callable[[], Config]
    pairing: Pairing
    rules: Accounts
    running: Callable[[], Sequence[Running]]
    channel: Callable[[Address], Channel | None]

    async def elsewhere(self, about: Address) -> Address | None:
        """A direct chat with an owner that is not the place at fault; None where there is none, or nobody is the owner
        for sure.
        """
        named = bool(self.config().commands.get("ownerAllowFrom"))
        people = notices.told(self._people(), named=named)
        for reach in notices.elsewhere(people, about.channel, about.account, about.chat):
            if (found := await self._address(reach)) is not None:
                return found
        return None

    async def own(self) -> Address | None:
        """A direct chat with somebody whom the configuration names as an owner; None where there is none."""
        for reach in self._people():
            if reach.owner and (found := await self._address(reach)) is not None:
                return found
        return None

    def _people(self) -> Iterator[Reach]:
        """Those who were let in, the first first: by code, then those whom the configuration lists."""
        sending = {(each.channel, each.account) for each in self.running()}
        for person in reversed(self.pairing.people()):
            if (person.channel, person.account) in sending:
                yield self._reach(person.channel, person.account, person.sender, person.chat)
        for channel, account in sorted(sending):
            policy = self.rules.find(channel, account).policy
            for sender in sorted(policy.allow.ids | policy.owners.ids):
                yield self._reach(channel, account, sender)

    def _reach(self, channel: str, account: str, sender: str, chat: str = "") -> Reach:
        links = self.config().session.identity_links
        person = keys.linked(channel, sender, links) or f"{channel}:{sender}"
        owner = self.rules.find(channel, account).policy.owners.names(sender)
        return Reach(channel, account, sender, person, chat, owner)

    async def _address(self, reach: Reach) -> Address | None:
        """The direct chat with somebody; where none is known, the channel is asked to open one."""
        plain = Address(reach.channel, reach.account, reach.chat or reach.sender, "direct")
        opens: Callable[[str], Awaitable[Address]] | None = getattr(self.channel(plain), "open_direct", None)
        if reach.chat or opens is None:
            return plain
        try:
            return await opens(reach.sender)
        except GarraError as error:
            log.info("%s has no direct chat with %s: %s", reach.channel, reach.sender, error.message)
            return None
