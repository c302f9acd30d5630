"""One schedule from one seed: what happens when, and what must hold at its end."""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from garra.domains.delivery.draft import OutboxRow
from garra.domains.delivery.inbox import InboxRow
from garra.domains.delivery.ledger import Query
from tests.simulation import loop
from tests.simulation.disk import Disk, blank
from tests.simulation.judge import Broken, Judge, Outcome, name
from tests.simulation.mind import Provider
from tests.simulation.process import Process, World
from tests.simulation.world import Plan, Platform

__all__ = ["Broken", "Outcome", "run"]

BUSY_S = 20.0
"""People write, processes die, and everything has faults, this long."""

PATIENCE_S = 3_000.0
"""So long after the last fault everything must be at its end."""


CLOSED = frozenset(("done", "dead", "sent", "unsure"))


class _Faults(logging.Handler):
    """What the program logs as a fault of its own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


@contextmanager
def _listening() -> Iterator[list[str]]:
    root, faults = logging.getLogger("garra"), _Faults()
    before = root.level, root.propagate
    root.setLevel(logging.ERROR)
    root.propagate = False
    root.addHandler(faults)
    try:
        yield faults.found
    finally:
        root.removeHandler(faults)
        root.level, root.propagate = before[0], before[1]


@functools.cache
def _blank() -> bytes:
    return blank()


def run(seed: int, platform: type[Platform] = Platform) -> Outcome:
    """Raises Broken, which names the seed and its plan."""
    random = Random(seed)
    plan = Plan.of(random)
    try:
        with _listening() as faults:
            return loop.run(_schedule(random, plan, platform, faults))
    except AssertionError as fault:
        raise Broken(f"seed {seed}: {fault}\n{plan}") from fault


async def _schedule(random: Random, plan: Plan, network: type[Platform], faults: list[str]) -> Outcome:
    clock = loop.Clock(asyncio.get_running_loop())
    disk = Disk(_blank(), _blank(), random, clock, slow=plan.slow, full=plan.full)
    world = World(plan, random, disk, network(clock, random, plan), Provider(clock, random, plan), itertools.count(1))
    story = Story(world, faults)
    await story.busy()
    world.heal()
    await story.finish()
    try:
        return (await Judge.of(world, story.process)).judge()
    finally:
        await story.process.kill(power_cut=False)


class Story:
    """The processes of a schedule, one after the other."""

    def __init__(self, world: World, faults: list[str]) -> None:
        self._world, self._faults = world, faults
        self._slips = world.plan.slips
        self._clock = world.platform.clock
        self.process = self._born()

    async def busy(self) -> None:
        """People write and processes are killed."""
        plan, random = self._world.plan, self._world.random
        said = [(at, "say") for at in _times(random, plan)]
        kills = [(random.random() * BUSY_S, "kill") for _ in range(plan.kills)]
        for at, what in sorted(said + kills):
            await self._pass(at)
            if what == "say":
                self._world.platform.say()
            else:
                await self._again()
        await self._pass(BUSY_S)

    async def finish(self) -> None:
        """Give it time until nothing is open any more."""
        self.process.life.spare()
        end, platform = self._clock.monotonic() + PATIENCE_S, self._world.platform
        rows: list[InboxRow | OutboxRow] = []
        while self._clock.monotonic() < end:
            await self._pass(self._clock.monotonic() + 5.0)
            rows = await self.process.ledger.rows(Query(limit=10_000))
            closed = all(row.state in CLOSED for row in rows)
            if closed and platform.cursor == len(platform.updates) and self.process.idle:
                self._look()
                return
        still = [(name(row), row.state) for row in rows if row.state not in CLOSED]
        raise Broken(f"not at its end after {PATIENCE_S} s: {still}")

    def _look(self) -> None:
        if self._faults or self.process.life.faults:
            raise Broken(f"faults of its own: {self._faults + self.process.life.faults}")

    async def _pass(self, until: float) -> None:
        """Let time pass; a process that dies meanwhile is followed by another."""
        while (left := until - self._clock.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self.process.life.died.wait()
            except TimeoutError:
                return
            await self._again()

    async def _again(self) -> None:
        random, plan = self._world.random, self._world.plan
        await self.process.kill(power_cut=random.random() < plan.cuts)
        self._look()
        await self._clock.sleep(random.choice((0.0, random.random() * 5)))
        self.process = self._born()

    def _born(self) -> Process:
        fatal = None
        if self._slips and not self._world.healed:
            self._slips -= 1
            fatal = self._world.random.randrange(1, self._world.random.choice((40, 400)))
        process = Process(self._world, fatal)
        process.start()
        return process


def _times(random: Random, plan: Plan) -> list[float]:
    """When somebody says something: alone, or in a burst."""
    times: list[float] = []
    while len(times) < plan.messages:
        at = random.random() * BUSY_S * 0.7
        count = random.randint(2, 5) if random.random() < plan.bursts else 1
        times += [at + random.random() * 0.4 for _ in range(count)]
    return times
