"""A small world under a clock of its own: people, a platform with faults, a disk, and processes that are killed.

Everything random comes from one seed, so a schedule that fails fails again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

import garra.io.store.db
from garra.core.errors import Unavailable
from garra.core.lanes import Mode
from garra.io.store.db import Connection, explained, statements
from garra.sdk.channel import Address, Inbound, Limits, Outbound, Pulse, Receive, Sender, SendFailed
from garra.testing.clock import ManualClock

T = TypeVar("T")

MODES: tuple[Mode, ...] = ("followup", "collect", "interrupt", "steer")
CHANNEL, ACCOUNT, OWNER = "sim", "main", "owner"


def blank() -> bytes:
    """An empty database with every migration gone."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for step in sorted((Path(garra.io.store.db.__file__).parent / "migrations").glob("*.sql")):
        for statement in statements(step.read_text()):
            connection.execute(statement)
    data = connection.serialize()
    connection.close()
    return data


@dataclass(frozen=True)
class Plan:
    """How bad a world is; each a chance from 0 to 1."""

    lost: float
    passing: float
    wait: float
    slow: float
    full: float
    duplicate: float
    reorder: float
    markup: float
    kills: int
    cuts: float
    idempotent: bool
    chats: int
    messages: int
    mode: Mode

    @classmethod
    def of(cls, random: Random) -> Plan:
        def chance(most: float) -> float:
            return random.choice((0.0, random.random() * most))

        return cls(
            lost=chance(0.3),
            passing=chance(0.4),
            wait=chance(0.2),
            slow=chance(0.5),
            full=chance(0.05),
            duplicate=chance(0.5),
            reorder=chance(0.5),
            markup=chance(0.3),
            kills=random.choice((0, 1, 1, 2, 3)),
            cuts=random.choice((0.0, 0.5)),
            idempotent=random.random() < 0.3,
            chats=random.randint(1, 3),
            messages=random.randint(1, 8),
            mode=random.choice(MODES),
        )


class Disk:
    """What is written, and what of it would survive a power cut."""

    def __init__(self, image: bytes) -> None:
        self.image = image  # everything that is committed
        self.safe = image  # as of the last commit with synchronous=FULL


class Killed(asyncio.CancelledError):
    """The process is gone."""


class Store:
    """One process's database on a disk, as `domains.delivery.store.Store`; slow, full, and gone with its process."""

    def __init__(self, disk: Disk, clock: ManualClock, random: Random, plan: Plan) -> None:
        self.dead = False
        self.healed = False
        self._disk, self._clock, self._random, self._plan = disk, clock, random, plan
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.deserialize(disk.image)
        self._lock = asyncio.Lock()

    async def write(self, work: Callable[[Connection], T], *, durable: bool = False) -> T:
        async with self._lock:
            await self._pause()
            if not self.healed and self._random.random() < self._plan.full:
                raise Unavailable("the disk is full", retryable=True)
            value = self._commit(work)
            if durable:
                self._disk.safe = self._connection.serialize()
        await self._pause()
        return value

    async def read(self, work: Callable[[Connection], T]) -> T:
        await self._pause()
        return work(self._connection)

    def _commit(self, work: Callable[[Connection], T]) -> T:
        connection = self._connection
        connection.execute("BEGIN")
        try:
            value = work(connection)
        except sqlite3.Error as error:
            connection.execute("ROLLBACK")
            raise explained(error, Path("sim")) from error
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        return value

    async def _pause(self) -> None:
        slow = not self.healed and self._random.random() < self._plan.slow
        await self._clock.sleep(self._random.random() * 0.5 if slow else 0)
        if self.dead:
            raise Killed

    def end(self, *, power_cut: bool) -> None:
        """The process dies; with a power cut only what was synced is left."""
        self.dead = True
        self._disk.image = self._disk.safe if power_cut else self._connection.serialize()
        self._disk.safe = self._disk.image
        self._connection.close()


@dataclass
class Shown:
    """One message on the platform."""

    at: float
    id: str
    key: str
    chat: str
    thread: str
    text: str


@dataclass
class Platform:
    """The network: what people said, what it has handed over, and what is shown in its chats."""

    clock: ManualClock
    random: Random
    plan: Plan
    updates: list[Inbound] = field(default_factory=list)
    cursor: int = 0
    shown: list[Shown] = field(default_factory=list)
    healed: bool = False
    silent_until: float = 0.0
    silent_since: float = 0.0
    early: list[str] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def say(self, chat: str, thread: str, text: str) -> None:
        number = str(len(self.updates) + 1)
        address = Address(CHANNEL, ACCOUNT, chat, "group" if thread else "direct", thread)
        self.updates.append(Inbound(number, "message", address, Sender(f"u{chat}"), text))
        self.arrived.set()

    def batch(self) -> list[tuple[int, Inbound]]:
        """What follows the cursor: with some twice, and not always in order."""
        found = list(enumerate(self.updates))[self.cursor :]
        twice = [entry for entry in found if self.chance(self.plan.duplicate)]
        old = [(at, self.updates[at]) for at in range(self.cursor) if self.chance(self.plan.duplicate * 0.3)]
        batch = [*old, *found, *twice]
        if self.chance(self.plan.reorder):
            self.random.shuffle(batch)
        return batch

    def chance(self, chance: float) -> bool:
        return not self.healed and self.random.random() < chance

    def show(self, message: Outbound) -> str:
        """Take it; a platform that knows keys shows each once."""
        if self.plan.idempotent:
            for before in self.shown:
                if before.key == message.key:
                    return before.id
        address = message.address
        number = str(1000 + len(self.shown))
        self.shown.append(
            Shown(self.clock.monotonic(), number, message.key, address.chat, address.thread, message.text)
        )
        return number


class Line:
    """One process's channel to the platform."""

    def __init__(self, platform: Platform) -> None:
        self.limits = Limits(
            text=200, formats=("html", "plain"), per_second=30, per_chat_s=0.2, idempotent=platform.plan.idempotent
        )
        self.dead = False
        self._platform = platform

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        """Poll for ever; the cursor moves behind what was received."""
        platform = self._platform
        while True:
            batch = platform.batch()
            if not batch:
                platform.arrived.clear()
                await platform.arrived.wait()
                continue
            for _, event in batch:
                await receive(event)
                self._alive()
            platform.cursor = max(platform.cursor, max(at for at, _ in batch) + 1)

    async def send(self, message: Outbound) -> str:
        platform, plan = self._platform, self._platform.plan
        began = platform.clock.monotonic()
        await platform.clock.sleep(platform.random.random() * 0.3)
        self._alive()
        if platform.silent_since < began < platform.silent_until:
            platform.early.append(message.key)
        if platform.chance(plan.wait):
            seconds = 1.0 + platform.random.random() * 5
            platform.silent_since = platform.clock.monotonic()
            platform.silent_until = max(platform.silent_until, platform.silent_since + seconds)
            raise SendFailed("passing", "429 too many", retry_after_s=seconds)
        if platform.chance(plan.passing):
            raise SendFailed("passing", "502 bad gateway")
        if message.format == "html" and platform.chance(plan.markup):
            raise SendFailed("format", "400 bad entities")
        if platform.chance(plan.lost / 2):
            raise SendFailed("unsure", "cut before it was read")
        number = platform.show(message)
        await platform.clock.sleep(platform.random.random() * 0.2)
        self._alive()
        if platform.chance(plan.lost / 2):
            raise SendFailed("unsure", "cut before the answer")
        return number

    def _alive(self) -> None:
        if self.dead:
            raise Killed
