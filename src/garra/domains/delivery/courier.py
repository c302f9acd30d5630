"""The outbox pump of one account: while its link is up, each chat's next message goes out, at the platform's pace."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType

from garra.core.errors import GarraError
from garra.core.spool import Dead, Doubt, Hold
from garra.core.value import frozen
from garra.domains.delivery.draft import OutboxRow
from garra.domains.delivery.outbox import Outbox, Rewrite, cut
from garra.domains.delivery.pace import Pace
from garra.sdk.channel import Channel, SendFailed
from garra.sdk.ports import Clock, Spawn, Task

log = logging.getLogger(__name__)

IN_FLIGHT = 64
"""Messages of one account that are with the platform at the same time, each of another chat or thread."""

SEND_S = 120.0
"""How long a platform may take to answer; beyond it nobody knows whether the message arrived."""

PAUSE_S = 1.0
"""Between two tries to write down what happened, when the disk refuses."""


def _nobody(_: str) -> None:
    """Where nobody asked to be told."""


@frozen
class Route:
    """What a courier works with. `pace` is shared by all accounts with the same credential; `refused` is told when the
    platform no longer takes the credential; `rewrite` makes what is too long or too large into what is not.
    """

    channel: str
    account: str
    outbox: Outbox
    pace: Pace
    clock: Clock
    spawn: Spawn
    rewrite: Rewrite = cut
    refused: Callable[[str], None] = _nobody
    send_s: float = SEND_S


class Courier:
    """Sends what the outbox holds for one account. Nothing goes, and no try is burned, while the link is down."""

    def __init__(self, channel: Channel, route: Route) -> None:
        self.pace = route.pace
        self._channel = channel
        self._route = route
        self._up = self._hurry = self._closed = False
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._sending = 0
        self._alarm: Task | None = None
        self._end = route.outbox.subscribe(self._heard)

    @property
    def sending(self) -> int:
        """How many messages are with the platform right now."""
        return self._sending

    def up(self) -> None:
        """The link stands: what waited for it goes at once."""
        self._up = self._hurry = True
        self._wake.set()

    def down(self) -> None:
        """The link is gone; what is with the platform already is waited for."""
        self._up = False

    async def run(self) -> None:
        """Until cancelled. First it settles what an earlier process left half sent."""
        await self._stored(self._recover)
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._up and not self._closed:
                await self._stored(self._round)

    async def close(self, grace_s: float = 5.0) -> None:
        """Take nothing more in hand, and wait for what is with the platform."""
        if not self._closed:
            self._closed = True
            self._end()
        self._ring(None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._idle.wait()

    async def _recover(self) -> None:
        route = self._route
        await route.outbox.recover(route.channel, route.account, idempotent=self._channel.limits.idempotent)

    async def _round(self) -> None:
        """Send the next message of each chat that may have one now; wake again for the others."""
        route = self._route
        if self._hurry:
            await route.outbox.hurry(route.channel, route.account)
            self._hurry = False
        heads = await route.outbox.heads(route.channel, route.account)
        now = route.clock.now_ms()
        ready: list[OutboxRow] = []
        soonest: float | None = None
        for row in heads:
            wait = max((row.due_at - now) / 1000, self.pace.delay(row.draft.address))
            if wait > 0:
                soonest = wait if soonest is None else min(soonest, wait)
            elif self._sending + len(ready) < IN_FLIGHT and self.pace.take(row.draft.address):
                ready.append(row)
        self._ring(soonest)
        for row in await route.outbox.claim(ready) if ready else ():
            self._sending += 1
            self._idle.clear()
            route.spawn(self._send(row), f"send {row.key}")

    async def _send(self, row: OutboxRow) -> None:
        platform_id: str | None = None
        try:
            if (pause := self.pace.held()) > 0:  # the platform said "later" while this one was being claimed
                await self._stored(lambda: self._route.outbox.put_back(row, pause))
                return
            async with _Outcome(self, row), asyncio.timeout(self._route.send_s):
                platform_id = await sent(self._channel, row)
            if (proof := platform_id) is not None:
                await self._stored(lambda: self._route.outbox.sent(row, proof))
        finally:
            self._sending -= 1
            if not self._sending:
                self._idle.set()
            self._wake.set()

    async def failed(self, row: OutboxRow, fault: SendFailed) -> None:
        """Store what follows from a send that did not end well."""
        route = self._route
        if fault.retry_after_s is not None:
            self.pace.hold(fault.retry_after_s)

        async def settle() -> None:
            if row.draft.edits and fault.fault in {"refused", "gone"}:
                await route.outbox.anew(row)
                return
            idempotent = self._channel.limits.idempotent or bool(row.draft.edits)
            effect = await route.outbox.failed(row, fault, idempotent=idempotent, rewrite=route.rewrite)
            if isinstance(effect, Dead | Doubt):
                end = "was not delivered" if isinstance(effect, Dead) else "may not have arrived"
                log.warning(
                    "%s/%s: a message %s: %s (garra messages show %s)",
                    route.channel,
                    route.account,
                    end,
                    fault.message,
                    row.key,
                )
            if isinstance(effect, Hold):
                self.down()
                route.refused(fault.message)

        await self._stored(settle)

    async def _stored(self, step: Callable[[], Awaitable[object]]) -> None:
        """Do a step of ours; where the disk refuses, again until it does not."""
        while True:
            try:
                await step()
            except GarraError as error:
                if not error.retryable:
                    raise
                log.warning("%s", error.message)
                await self._route.clock.sleep(PAUSE_S)
            else:
                return

    def _heard(self, row: OutboxRow) -> None:
        address, route = row.draft.address, self._route
        if row.state == "pending" and (address.channel, address.account) == (route.channel, route.account):
            self._wake.set()

    def _ring(self, seconds: float | None) -> None:
        """Wake after so many seconds, and not at another time set before."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if seconds is not None:
            self._alarm = self._route.spawn(self._later(seconds), f"courier {self._route.channel}")

    async def _later(self, seconds: float) -> None:
        await self._route.clock.sleep(seconds)
        self._wake.set()


class _Outcome:
    """Whatever ends a send that did not end well becomes a fault that is stored; the program's own end does not."""

    def __init__(self, courier: Courier, row: OutboxRow) -> None:
        self._courier = courier
        self._row = row

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        await self._courier.failed(self._row, judged(error))
        return isinstance(error, GarraError | TimeoutError)


async def sent(channel: Channel, row: OutboxRow) -> str:
    """Send it, or make the message it edits into it; the platform's id of what is there now."""
    edit = getattr(channel, "edit", None)
    if not row.draft.edits or edit is None:
        return await channel.send(row.outbound())
    await edit(row.draft.edits, row.outbound())
    return row.draft.edits


def judged(error: Exception) -> SendFailed:
    """What an error of a channel's `send` means: what is not surely undelivered is unsure."""
    if isinstance(error, SendFailed):
        return error
    if isinstance(error, TimeoutError):
        return SendFailed("unsure", "the platform did not answer in time")
    if isinstance(error, GarraError):
        undelivered = (error.details or {}).get("kind") == "connect"
        return SendFailed("passing" if undelivered else "unsure", error.message)
    return SendFailed("unsure", f"the channel failed: {type(error).__name__}")
