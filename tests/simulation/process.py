"""One process of the world, wired as the program wires it: link, inbox, engine, pump, kernel, runs with their lanes,
sessions, outbox, courier and owner. Played are the model, the platform and the disk.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from garra.config.sections import Config
from garra.core import lanes
from garra.core.errors import GarraError, NotFound
from garra.core.events import EntryStored
from garra.core.ids import SessionId
from garra.domains.access.pairing import Pairing
from garra.domains.delivery.courier import Courier, Route
from garra.domains.delivery.engine import Embedded
from garra.domains.delivery.inbox import Inbox
from garra.domains.delivery.ledger import Ledger
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.owner import Owner
from garra.domains.delivery.pace import Pace
from garra.domains.delivery.replies import Replies
from garra.domains.delivery.timeline import Timeline
from garra.domains.sessions.store import Sessions
from garra.io.store.shelf import Shelf
from garra.runs.drive import Driver, Setup, said
from garra.runs.run import Run, Turn
from garra.runs.runner import Ports as RunPorts
from garra.runs.runner import Runs
from garra.sdk.channel import Address, Identity, Ignored, Inbound
from garra.sdk.model import Model
from garra.turns.histories import Histories
from garra.turns.kernel import Kernel
from garra.turns.parts import Ports
from garra.turns.pump import Hand, Pump
from garra.turns.voice import Chats
from tests.simulation.disk import Disk, Files, Store
from tests.simulation.life import Life
from tests.simulation.mind import MODELS, Mind, Provider
from tests.simulation.world import ACCOUNT, AGENTS, CHANNEL, OWNER, Line, Plan, Platform

T = TypeVar("T")

FOLDER = Path("/dev/null/agents")
"""No folder can be there: whoever looks past the simulated disk finds nothing."""


@dataclass
class World:
    """What outlives a process."""

    plan: Plan
    random: Random
    disk: Disk
    platform: Platform
    provider: Provider
    ids: itertools.count[int]

    @property
    def healed(self) -> bool:
        return self.disk.healed

    def heal(self) -> None:
        """From now on nothing goes wrong any more."""
        self.disk.healed = self.platform.healed = self.provider.healed = True


class Pulse:
    """Nobody watches."""

    def alive(self) -> None: ...

    def connected(self, me: Identity) -> None: ...

    def note(self, line: str) -> None: ...


class Models:
    """The models that can be chosen."""

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model:
        for model in MODELS:
            if ref in (None, model.ref, model.id):
                return model
        raise NotFound(f"no model {ref!r}")

    def rows(self) -> Sequence[Any]:
        return ()


class Process:
    """It runs from `start` to `kill`, or dies by itself at the passage `fatal` of its life."""

    def __init__(self, world: World, fatal: int | None = None) -> None:
        self._world, disk, clock = world, world.disk, world.platform.clock
        self.life = Life(fatal)
        self.store = Store(disk, self.life, cuts=world.plan.cuts > 0)
        self.inbox, self.outbox = Inbox(self.store, clock), Outbox(self.store, clock)
        self.timeline = Timeline(self.store, clock)
        self.ledger = Ledger(self.store, self.inbox, self.outbox, self.timeline)
        self.owner = Owner(self.inbox, self.outbox, _home, clock=clock, spawn=self.life)
        self.sessions = Sessions(
            self.store, FOLDER, clock, lambda: f"id-{next(world.ids)}", lines=Files(disk, self.life)
        )
        self.mind = Mind(world.provider, self.life)
        self.runs = self._table()
        self.line = Line(world.platform, self.life)
        self.pairing = Pairing(lambda space: Shelf(self.store, space), clock, world.random.randrange)
        self.hand = Hand(self.inbox, Embedded(self.inbox, clock, self.life), {})
        ports = self._ports()
        self.kernel = Kernel(ports, Histories(Shelf(self.store, "group-history")))
        self.pump = Pump(self.kernel, self.hand, ports)
        pace = Pace(self.line.limits, clock)
        self.courier = Courier(self.line, Route(CHANNEL, ACCOUNT, self.outbox, pace, clock, self.life))

    def start(self) -> None:
        self.life(self._boot(), "boot")

    async def kill(self, *, power_cut: bool) -> None:
        """As SIGKILL: nothing of it does anything any more."""
        await self.life.end()
        self.store.end(power_cut=power_cut)
        if power_cut:
            self._world.disk.lose()

    @property
    def idle(self) -> bool:
        return not self.runs.every() and not len(self.kernel.answers) and not self.hand.jobs

    async def _boot(self) -> None:
        await self._again(self.sessions.open)
        await self._again(self.pairing.load)
        self.life(self.courier.run(), "courier")
        await self._again(lambda: self.owner.start(self.ledger))
        await self._again(self.pump.start)
        self.life(self._links(), "links")
        self.life(self._poll(), "poll")

    async def _again(self, step: Callable[[], Awaitable[T]]) -> T:
        """A start that the disk refuses is made again by whoever looks after the process."""
        while True:
            try:
                return await step()
            except GarraError as error:
                if not error.retryable:
                    raise
                await self._world.platform.clock.sleep(0.3)

    async def _links(self) -> None:
        """The link comes up after a while, and goes now and then."""
        random, clock = self._world.random, self._world.platform.clock
        while True:
            self.life.go_on()
            await clock.sleep(random.random() * 3)
            self.courier.up()
            self.life.go_on()
            await clock.sleep(5 + random.random() * 20)
            if not self._world.healed:
                self.courier.down()

    async def _poll(self) -> None:
        while True:
            self.life.go_on()
            await self._world.platform.clock.sleep(self._world.random.random())
            try:
                await self.line.run(self._receive, Pulse())
            except GarraError:
                continue

    async def _receive(self, event: Inbound | Ignored) -> None:
        await self.inbox.accept(event)

    def _table(self) -> Runs:
        clock, sessions, mind, models = self._world.platform.clock, self.sessions, self.mind, self._world.plan.models

        async def enrol(turn: Turn) -> SessionId:
            session = await sessions.ensure(turn.session_key, agent_id=turn.agent_id, cwd="/")
            return session.session_id

        async def keep(run: Run) -> None:
            transcript = await sessions.transcript(run.session_key)
            if not said(transcript.messages(), run.prompt):
                runs.emit(run, EntryStored((await transcript.append(run.prompt)).body))

        async def assemble(run: Run) -> Setup:
            transcript = await sessions.transcript(run.session_key)
            return Setup(transcript, MODELS[:models], mind.asker(transcript), mind.tools)

        driver = Driver(clock, self.life, assemble, lambda run, body: runs.emit(run, body))
        runs = Runs(RunPorts(clock, self.life, enrol, keep, driver.drive, lanes.Settings))
        return runs

    def _ports(self) -> Ports:
        settings = _config(self._world.plan)
        voice = Chats(lambda: settings, Replies(), self.runs, stage=lambda _: None, limits=lambda _: self.line.limits)
        return Ports(
            self.hand, self.outbox, self.timeline, lambda: settings, self.sessions, self.runs, Models(), self.pairing,
            voice, self._world.platform.clock, self.life, lambda agent: "/", _halt, lambda line: None,
        )  # fmt: skip


async def _halt(_: str) -> int:
    """No program runs."""
    return 0


async def _home(about: Address) -> Address:
    return replace(about, chat=OWNER, thread="", kind="direct")


def _config(plan: Plan) -> Config:
    crowd = (plan.crowd, plan.rounds)
    pauses_ms = (plan.quiet_ms, plan.debounce_ms)
    return _configured(plan.mode, plan.overflow, plan.cap, pauses_ms, crowd=crowd, shared=plan.shared)


@functools.cache
def _configured(
    mode: str, overflow: str, cap: int, pauses_ms: tuple[int, int], *, crowd: tuple[str, int], shared: bool
) -> Config:
    (quiet, debounce), (strategy, rounds) = pauses_ms, crowd
    told = {"agents": list(AGENTS), "maxRounds": rounds, "maxTurns": 2 * len(AGENTS)}
    people = ["u0", "u1", "u2"]
    return Config.model_validate(
        {
            "messages": {
                "inbound": {"debounceMs": quiet},
                "queue": {"mode": mode, "debounceMs": debounce, "cap": cap, "drop": overflow},
            },
            "agents": {"list": [{"id": "main"}, *({"id": agent} for agent in AGENTS)]},
            "broadcast": {"strategy": strategy, f"{CHANNEL}:g0": told} if strategy else {},
            "session": {"dmScope": "main" if shared else "per-channel-peer"},
            "channels": {CHANNEL: {"dmPolicy": "pairing", "allowFrom": people, "groups": {"*": {}}}},
        }
    )
