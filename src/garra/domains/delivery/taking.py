"""What a link's channel calls with each event: it is stored, and one that never can be stops nothing behind it."""

from __future__ import annotations

from collections.abc import Callable

from garra.core.characters import keyed
from garra.core.errors import GarraError, Unavailable
from garra.domains.delivery.storable import BROKEN, UNSTORABLE
from garra.sdk.channel import Ignored, Inbound, Receive

TRIES = 3
"""So often an event may fail for a reason of its own; then it is recorded as ignored, and reading goes on."""

_KNOWN = 100

FAULTS = (*BROKEN, AssertionError, GarraError)
"""What storing an event can end in. A fault that may pass, such as a full disk, is none of the event's own."""


class Taking:
    """One account's, over all runs of its link. `noted` gets a line for the owner."""

    def __init__(self, store: Receive, noted: Callable[[str], None]) -> None:
        self._store, self._noted = store, noted
        self._failed: dict[tuple[str, str], int] = {}

    async def __call__(self, event: Inbound | Ignored) -> None:
        """Returns when the event is on disk, or a note that it cannot be. Raises what storing raises."""
        try:
            await self._store(event)
        except FAULTS as fault:
            if isinstance(fault, Unavailable) or getattr(fault, "retryable", False) or not self._often(event):
                raise
            await self._store(Ignored(keyed(str(event.id)), None, UNSTORABLE))
            self._noted(f"an event could not be stored and was passed over: {type(fault).__name__}")

    def _often(self, event: Inbound | Ignored) -> bool:
        """Count its failures; whether they are enough."""
        name = (repr(event.address)[:1000], repr(event.id)[:1000])
        tries = self._failed.pop(name, 0) + 1
        if tries >= TRIES:
            return True
        self._failed[name] = tries
        while len(self._failed) > _KNOWN:
            self._failed.pop(next(iter(self._failed)))
        return False
