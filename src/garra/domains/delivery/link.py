"""One account's link: run, watched, started again. Whatever its channel does, only this link is touched.

Life is told by `Pulse.alive` alone. A link that shows none for too long is cancelled and made anew; a passing fault is
waited out, each time longer up to a cap, for ever; a refused credential ends it and the owner is told.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from garra.core.errors import GarraError
from garra.core.value import frozen, record
from garra.domains.delivery.accounts import LinkKey, Setup
from garra.domains.delivery.taking import Taking
from garra.io.log import about
from garra.sdk.channel import Channel, Identity, LinkLost, LinkRefused, Receive
from garra.sdk.ports import Clock, Spawn, Task

log = logging.getLogger(__name__)

State = Literal["stopped", "starting", "connected", "stalled", "waiting", "refused"]


@frozen
class Patience:
    """Seconds. A link is stalled after `stall_s` without life, but may take `start_s` until it shows the first.

    Waits between starts double from `first_s` to `most_s`, a fifth more or less by chance. A link that lived `sound_s`
    begins anew. The owner is told after `tell_after` vain starts. `end_s`: how long a cancelled link may take to end.
    """

    stall_s: float = 90.0
    start_s: float = 300.0
    first_s: float = 1.0
    most_s: float = 60.0
    sound_s: float = 30.0
    tell_after: int = 6
    end_s: float = 5.0


@frozen
class Doors:
    """What the host gives. `make` makes an account's channel without network; `receive` stores what it hears;
    `tell` reaches the log, and the owner by another way than this account; `chance` is a number from 0 to 1.
    """

    make: Callable[[Setup], Channel]
    receive: Callable[[Setup], Receive]
    tell: Callable[[LinkKey, str], None]
    clock: Clock
    spawn: Spawn
    chance: Callable[[], float] = random.random


@frozen
class LinkStatus:
    """An account as it stands. Times in milliseconds since 1970, None for never."""

    key: LinkKey
    name: str
    enabled: bool
    configured: bool
    state: State
    fault: str = ""
    me: Identity | None = None
    since_ms: int = 0
    started_ms: int | None = None
    stopped_ms: int | None = None
    connected_ms: int | None = None
    alive_ms: int | None = None
    inbound_ms: int | None = None
    attempts: int = 0
    next_ms: int | None = None
    note: str = ""


@record
class _Run:
    """One run of the channel, and what became of it. It is the channel's `Pulse`; late words of an ended run are
    not heard."""

    link: Link
    began: float
    alive_at: float | None = None
    lived_from: float | None = None
    lost: LinkLost | None = None
    refused: str = ""
    stalled: bool = False
    over: bool = False

    def alive(self) -> None:
        if not self.over:
            self.alive_at = self.link.now()
            self.lived_from = self.alive_at if self.lived_from is None else self.lived_from
            self.link.beat()

    def connected(self, me: Identity) -> None:
        if not self.over:
            self.link.connect(me)

    def note(self, line: str) -> None:
        if not self.over:
            self.link.noted(line)


class Link:
    """One account. `changed` is called after each change of `state` or `up`."""

    def __init__(self, setup: Setup, doors: Doors, patience: Patience, changed: Callable[[Link], None]) -> None:
        self.setup = setup
        self.channel: Channel | None = None
        self.up = False
        self.me: Identity | None = None
        self._doors, self._patience, self._changed = doors, patience, changed
        self._state: State = "stopped"
        self._fault, self._note = setup.fault, ""
        self._since = doors.clock.now_ms()
        self._times: dict[str, int] = {}
        self._attempts = 0
        self._told = False
        self._task: Task | None = None
        self._last: float | None = None
        self._taking = Taking(doors.receive(setup), self.noted)

    # ---- what is asked of it

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin; nothing happens when it runs. A link that cannot run says why in its status."""
        if self.running:
            return
        self._attempts, self._told, self._fault = 0, False, self.setup.fault
        if not self.setup.fault:
            self._stamp("started")
            self._become("starting")
            self._task = self._doors.spawn(self._run(), f"link {self.setup.key}")

    async def stop(self) -> None:
        """End it; its channel is cancelled and gone when this returns, or left behind when it does not end."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await _ended(task, self._patience.end_s + 1)
            self._stamp("stopped")
        self._down("stopped")

    def probe(self) -> Mapping[str, Any]:
        """What the channel knows of itself, without network. Raises GarraError when it cannot be made."""
        channel = self.channel or self._doors.make(self.setup)
        tell = getattr(channel, "inspect", None)
        return dict(tell()) if tell is not None else {}

    def status(self) -> LinkStatus:
        state = self._state
        if state == "connected" and self._quiet() > self._beat() * 1.4 > 0:
            state = "stalled"
        times = self._times
        fault = self._fault or ("no sign of life since the last completed poll" if state == "stalled" else "")
        return LinkStatus(
            self.setup.key,
            self.setup.name,
            self.setup.enabled,
            self.setup.configured,
            state,
            fault,
            self.me,
            times.get("alive", self._since) if state == "stalled" else self._since,
            times.get("started"),
            times.get("stopped"),
            times.get("connected"),
            times.get("alive"),
            times.get("inbound"),
            0 if state == "connected" else self._attempts,
            times.get("next") if state == "waiting" else None,
            self._note,
        )

    # ---- what its channel tells

    def receiving(self) -> Receive:
        """What its channel calls with each event."""
        store = self._taking

        async def receive(event: Any) -> None:
            await store(event)
            self.heard()

        return receive

    def now(self) -> float:
        return self._doors.clock.monotonic()

    def beat(self) -> None:
        self._last = self.now()
        self._stamp("alive")
        if self._told:
            self._told = False
            self._doors.tell(self.setup.key, f"{self.setup.key} is connected again.")
        if self._state != "connected":
            self._fault = ""
            self._become("connected")

    def connect(self, me: Identity) -> None:
        self.me, self.up = me, True
        self._stamp("connected")
        self._changed(self)

    def noted(self, line: str) -> None:
        self._note = line
        log.warning("%s: %s", self.setup.key, line)

    def heard(self) -> None:
        """Something came in and was stored."""
        self._stamp("inbound")

    # ---- how it lives

    async def _run(self) -> None:
        about(channel=self.setup.key.channel)
        while True:
            run = await self._once()
            if run.refused:
                self._fault = run.refused
                self._down("refused")
                self._doors.tell(self.setup.key, f"{self.setup.key} is stopped: {run.refused}")
                return
            await self._wait(run)

    async def _once(self) -> _Run:
        """One run of the channel, to its end, or to the end of our patience."""
        run = _Run(self, self.now())
        try:
            self.channel = self._doors.make(self.setup)
        except GarraError as error:
            run.refused = error.message
            return run
        self._become("starting")
        ended = asyncio.Event()
        work = self._doors.spawn(self._live(self.channel, run, ended), f"channel {self.setup.key}")
        watch = self._doors.spawn(self._watch(run, ended), f"watchdog {self.setup.key}")
        try:
            await ended.wait()
        finally:
            run.over = True
            watch.cancel()
            work.cancel()
            await _ended(work, self._patience.end_s)
        return run

    async def _live(self, channel: Channel, run: _Run, ended: asyncio.Event) -> None:
        """A fault that is no LinkLost is ours: the task's owner logs it, and it passes like any other."""
        try:
            await channel.run(self.receiving(), run)
        except LinkLost as lost:
            run.lost = lost
        except LinkRefused as refused:
            run.refused = refused.message
        except GarraError as error:  # such as a full disk, on which nothing that comes in can be stored
            run.lost = LinkLost(error.message)
        finally:
            ended.set()

    async def _watch(self, run: _Run, ended: asyncio.Event) -> None:
        """Wait until the link has been silent for too long. Before its first sign of life it has more time."""
        if self._beat() <= 0:
            return
        while (left := self._deadline(run) - self.now()) > 0:
            await self._doors.clock.sleep(left)
        run.stalled = True
        ended.set()

    def _deadline(self, run: _Run) -> float:
        if run.alive_at is None:
            return run.began + self._patience.start_s
        return run.alive_at + max(self._patience.stall_s, 3 * self._beat())

    async def _wait(self, run: _Run) -> None:
        lived = 0.0 if run.lived_from is None else (run.alive_at or 0.0) - run.lived_from
        self._attempts = 1 if lived >= self._patience.sound_s else self._attempts + 1
        self._fault = _why(run)
        delay = self._delay(run.lost)
        self._times["next"] = self._doors.clock.now_ms() + round(delay * 1000)
        self._down("waiting")
        if self._attempts >= self._patience.tell_after and not self._told:
            self._told = True
            why = self._fault.rstrip(".")
            self._doors.tell(self.setup.key, f"{self.setup.key} has no connection: {why}. It goes on trying.")
        else:
            log.warning("%s: %s; next try in %.0f s", self.setup.key, self._fault.rstrip("."), delay)
        await self._doors.clock.sleep(delay)

    def _delay(self, lost: LinkLost | None) -> float:
        """How long to wait: doubling, capped, a little by chance, and at least as long as the platform asked."""
        asked = float(((lost.details if lost else None) or {}).get("retryAfterS") or 0.0)
        grown = self._patience.first_s * 2.0 ** min(self._attempts - 1, 16)
        return max(asked, min(grown, self._patience.most_s) * (0.8 + 0.4 * self._doors.chance()))

    # ---- small things

    def _beat(self) -> float:
        return self.channel.limits.beat_s if self.channel is not None else 0.0

    def _quiet(self) -> float:
        return 0.0 if self._last is None else self.now() - self._last

    def _stamp(self, what: str) -> None:
        self._times[what] = self._doors.clock.now_ms()

    def _down(self, state: State) -> None:
        self.up = False
        self._become(state)

    def _become(self, state: State) -> None:
        if self._state != state:
            self._state, self._since = state, self._doors.clock.now_ms()
        self._changed(self)


def _why(run: _Run) -> str:
    if run.stalled:
        return "no poll was completed for too long; the link is made anew."
    if run.lost is not None:
        return run.lost.message
    return "the link ended by itself; the log has more."


async def _ended(task: Task, grace_s: float) -> None:
    """Wait for a cancelled task, not longer than `grace_s`."""
    gone = asyncio.Event()
    task.add_done_callback(lambda _: gone.set())
    with suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            await gone.wait()
    if not task.done():
        log.error("a channel's task does not end when it is cancelled; it is left behind")
