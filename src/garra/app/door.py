"""What every channel calls with each event: stored for whom the rules may let in, and of strangers only so much."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

from garra.core import access, strangers
from garra.core.access import Facts
from garra.core.errors import GarraError
from garra.core.value import record
from garra.domains.access.allowlist import Accounts
from garra.domains.access.pairing import Pairing
from garra.domains.delivery.accounts import LinkKey, Setup
from garra.domains.delivery.inbox import STRANGER, Inbox
from garra.domains.delivery.storable import BROKEN
from garra.sdk.channel import Address, Ignored, Inbound, Receive
from garra.sdk.ports import Clock, Spawn

log = logging.getLogger(__name__)

TELL_S = 60.0
"""How long what was left out is counted before it is told in one line."""


@record
class Door:
    """`bot` tells who an account is on its platform. An event that is left out is confirmed like any other."""

    inbox: Inbox
    rules: Accounts
    pairing: Pairing
    bot: Callable[[LinkKey], str]
    clock: Clock
    spawn: Spawn
    _states: dict[LinkKey, strangers.State] = field(default_factory=dict)

    def receive(self, setup: Setup) -> Receive:
        """The `Receive` of one account."""
        key = setup.key

        async def receive(event: Any) -> None:
            stranger = self._is_stranger(event)
            if not stranger or self._kept(key, event):
                await self.inbox.accept(event, self.bot(key), stranger=stranger)

        return receive

    def _is_stranger(self, event: Inbound | Ignored) -> bool:
        """Whether nobody lets its sender in; what a channel has no use for is nobody's in particular. An event that is
        not what its type says is left to the inbox.
        """
        try:
            return isinstance(event, Ignored) or self._is_outside(event)
        except BROKEN:
            return False

    def _is_outside(self, event: Inbound) -> bool:
        address, sender = event.address, event.sender
        account = self.rules.find(address.channel, address.account)
        policy = replace(account.policy, paired=self.pairing.allowed(account.channel, account.id))
        room = None
        if address.kind != "direct":
            room = account.group(address.chat, address.thread, address.parent, address.guild).room
        facts = Facts(event.event, sender.id, address.chat, own=event.own, bot=sender.is_bot, room=room)
        return isinstance(sender.id, str) and access.outside(policy, replace(facts, roles=address.roles))

    def _kept(self, key: LinkKey, event: Inbound | Ignored) -> bool:
        sender = event.sender.id if isinstance(event, Inbound) else ""
        before = self._states.get(key, strangers.State())
        state, kept = strangers.came(before, sender, self.clock.now_ms())
        self._states[key] = state
        if state.left_out and not before.left_out:
            self.spawn(self._tell(key), f"strangers of {key}")
        return kept

    async def _tell(self, key: LinkKey) -> None:
        """One line, in the log and among the messages, for all that was left out."""
        await self.clock.sleep(TELL_S)
        self._states[key], count = strangers.told(self._states[key])
        line = f"{count} more messages of strangers were not kept"
        log.warning("%s: %s", key, line)
        place = Address(key.channel, key.account, "", "direct")
        try:
            await self.inbox.accept(Ignored(f"left-out:{self.clock.now_ms()}", place, f"{STRANGER}s: {line}"))
        except GarraError as error:
            log.warning("%s", error.message)
