"""The pace of one credential, shared by all who send with it."""

from __future__ import annotations

from garra.core import rates
from garra.sdk.channel import Address, Limits
from garra.sdk.ports import Clock


class Pace:
    """One credential's rates. Every message takes its turn here, an edit of a preview too."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._rate = rates.Rate(limits.per_second, limits.per_chat_s, limits.per_group_minute)
        self._clock = clock
        self._state = rates.State()

    def delay(self, address: Address) -> float:
        """Seconds until a message may go there."""
        return rates.delay(self._state, self._rate, address.chat, self._clock.monotonic(), group=_group(address))

    def take(self, address: Address) -> bool:
        """Take the turn, where there is one now."""
        if self.delay(address) > 0:
            return False
        now = self._clock.monotonic()
        self._state = rates.taken(self._state, self._rate, address.chat, now, group=_group(address))
        return True

    async def turn(self, address: Address) -> None:
        """Wait for a turn and take it."""
        while not self.take(address):
            await self._clock.sleep(self.delay(address))

    def held(self) -> float:
        """Seconds that the platform still wants nothing at all."""
        return max(0.0, self._state.until - self._clock.monotonic())

    def hold(self, seconds: float) -> None:
        """The platform said: later. It counts for every chat of the credential."""
        self._state = rates.held(self._state, self._clock.monotonic(), seconds)


def _group(address: Address) -> bool:
    return address.kind != "direct"
