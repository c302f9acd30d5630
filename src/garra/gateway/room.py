"""Where connections wait until their request is whole or somebody vouches for them: bounded in time, number and bytes.

One timer serves all of them, and only while there are any. The one that has been still for longest goes first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sized
from typing import Final, Protocol

from garra.core.value import frozen

log = logging.getLogger(__name__)

QUIET_S: Final = 60.0
"""After a warning that room was made, so long none follows."""


@frozen
class Limits:
    """Seconds, numbers and bytes that are granted to those who have shown no secret yet."""

    head_s: float = 15.0
    """For a whole request head, from the connection or from the end of the answer before it."""
    body_s: float = 60.0
    """For a whole body."""
    still_s: float = 15.0
    """Without a byte of the body."""
    known_still_s: float = 60.0
    """The same for a request whose secret was right; it has no other limit of time."""
    answer_s: float = 60.0
    """Until an answer that fills the socket is read."""
    linger_s: float = 15.0
    """So long the rest of a body is thrown away after an answer that did not need it."""
    per_address: int = 64
    """Unfinished requests of one address, counted once they are a second old."""
    crowd: int = 256
    """Unfinished requests of all addresses."""
    held_bytes: int = 16 << 20
    """Of unfinished bodies, all together."""
    connections: int = 1 << 20
    """Open connections of any kind."""
    beat_s: float = 1.0


def spared(allowed: int) -> int:
    """So many connections leave a quarter of the descriptors, and 64 at least, to the rest of the program."""
    return max(16, allowed - max(64, allowed // 4))


class Waiting(Protocol):
    """A connection that is not trusted yet. `since` is when it began to wait (loop time), `held` bytes of its body."""

    address: str
    since: float
    held: int

    @property
    def unfinished(self) -> bool:
        """Whether it counts against the limits of number."""
        ...

    def due(self, now: float) -> bool:
        """Whether its time is over."""
        ...

    def turn_out(self, status: int) -> None:
        """End it with this HTTP status where an answer makes sense."""
        ...

    def abort(self) -> None:
        """End it at once."""
        ...


class Room:
    """Who waits, the stillest first. `everybody` are all open connections of the port."""

    def __init__(self, limits: Limits, everybody: Sized) -> None:
        self.limits = limits
        self._everybody = everybody
        self._guests: dict[Waiting, None] = {}
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._warned = float("-inf")

    def __len__(self) -> int:
        return len(self._guests)

    @property
    def beating(self) -> bool:
        """Whether the timer runs."""
        return self._timer is not None

    def admit(self, guest: Waiting) -> None:
        """A new connection. Where the port is full the stillest one makes room for it, or it goes itself."""
        full = len(self._everybody) > self.limits.connections
        self.enter(guest)
        if full:
            self._warn(
                f"{self.limits.connections} connections are open, as many as the open-files limit leaves room for"
            )
            next(iter(self._guests)).abort()

    def enter(self, guest: Waiting) -> None:
        """It waits, or it moved just now."""
        self._guests.pop(guest, None)
        self._guests[guest] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.limits.beat_s, self._beat)

    def leave(self, guest: Waiting) -> None:
        self.forgive(guest)
        self._guests.pop(guest, None)

    def hold(self, guest: Waiting, size: int) -> None:
        """So many more bytes of its body are in memory."""
        guest.held += size
        self._bytes += size
        while self._bytes > self.limits.held_bytes:
            stillest = next(other for other in self._guests if other.held)
            self._warn(f"unfinished request bodies fill {self.limits.held_bytes >> 20} MiB")
            stillest.turn_out(503)
            self.forgive(stillest)

    def forgive(self, guest: Waiting) -> None:
        """Its bytes count no more."""
        self._bytes -= guest.held
        guest.held = 0

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _beat(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for guest in list(self._guests):
            if guest.due(now):
                guest.turn_out(408)
        self._thin(now)
        if self._guests:
            self._timer = asyncio.get_running_loop().call_later(self.limits.beat_s, self._beat)

    def _thin(self, now: float) -> None:
        """What is young may be a burst that is about to be read; what is over the limits after that goes."""
        seen: Counter[str] = Counter()
        total = 0
        for guest in reversed(list(self._guests)):
            if not guest.unfinished or now - guest.since < self.limits.beat_s:
                continue
            seen[guest.address] += 1
            total += 1
            if seen[guest.address] > self.limits.per_address or total > self.limits.crowd:
                self._warn(f"{seen[guest.address]} unfinished requests from {guest.address}, {total} from all")
                guest.turn_out(503)

    def _warn(self, what: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._warned >= QUIET_S:
            self._warned = now
            log.warning("%s: those that have been still for longest are closed", what)
