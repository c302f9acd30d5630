"""A small world: people, strangers among them, and a platform with faults. Everything random comes from one seed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, Literal, get_args

from garra.core.lanes import Mode, Overflow
from garra.sdk.channel import Address, Inbound, Limits, Outbound, Pulse, Receive, Sender, SendFailed
from garra.sdk.ports import Clock
from tests.simulation.life import Life

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
OVERFLOWS: Final[tuple[Overflow, ...]] = get_args(Overflow)
Crowd = Literal["", "parallel", "sequential"]
AGENTS: Final = ("one", "two")
CHANNEL, ACCOUNT, OWNER = "sim", "default", "owner"
STRANGER: Final = "Zz"
"""What every word of a stranger begins with."""


@dataclass(frozen=True)
class Plan:
    """How bad a world is: chances from 0 to 1, and how many of each.

    `kills` come at some time, `slips` in the middle of some step; `calls` is how often a model calls a tool, `fails`
    how often it fails. `crowd`: how several agents answer in the first group, in so many `rounds`.
    """

    lost: float
    passing: float
    wait: float
    slow: float
    full: float
    duplicate: float
    reorder: float
    markup: float
    calls: float
    fails: float
    kills: int
    slips: int
    cuts: float
    idempotent: bool
    chats: int
    messages: int
    groups: float
    strangers: float
    bursts: float
    stops: float
    mode: Mode
    overflow: Overflow
    cap: int
    quiet_ms: int
    debounce_ms: int
    shared: bool
    models: int
    crowd: Crowd = ""
    rounds: int = 1

    @classmethod
    def of(cls, random: Random) -> Plan:
        def chance(most: float) -> float:
            return random.choice((0.0, random.random() * most))

        plan = cls(
            lost=chance(0.3),
            passing=chance(0.4),
            wait=chance(0.2),
            slow=chance(0.5),
            full=chance(0.05),
            duplicate=chance(0.5),
            reorder=chance(0.5),
            markup=chance(0.3),
            calls=chance(0.7),
            fails=chance(0.2),
            kills=random.choice((0, 0, 1, 1, 2)),
            slips=random.choice((0, 0, 1, 2, 3)),
            cuts=random.choice((0.0, 0.5)),
            idempotent=random.random() < 0.3,
            chats=random.randint(1, 3),
            messages=random.randint(1, 8),
            groups=chance(1.0),
            strangers=chance(0.3),
            bursts=chance(1.0),
            stops=chance(0.3),
            mode=random.choice(MODES),
            overflow=random.choice(OVERFLOWS),
            cap=random.choice((1, 2, 20, 20)),
            quiet_ms=random.choice((0, 300)),
            debounce_ms=random.choice((0, 500)),
            shared=random.random() < 0.2,
            models=random.choice((1, 2)),
        )
        crowds: tuple[Crowd, ...] = ("", "", "", "parallel", "sequential")
        more = Random(repr(plan))  # so that the other draws of a seed stay what they were
        return replace(plan, crowd=more.choice(crowds), rounds=more.choice((1, 2)))

    def crowded(self, chat: str) -> bool:
        """Whether several agents answer in it."""
        return bool(self.crowd) and chat == "g0"


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

    clock: Clock
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

    def say(self) -> None:
        """Somebody says something: a friend or a stranger, alone with the bot or in a group, to it or not."""
        random, plan = self.random, self.plan
        number = len(self.updates) + 1
        chat = random.randrange(plan.chats)
        group, strange = random.random() < plan.groups, random.random() < plan.strangers
        mentioned = not group or random.random() < 0.6
        who = f"{'x' if strange else 'u'}{chat}"
        address = Address(CHANNEL, ACCOUNT, who, "direct")
        if group:
            address = Address(CHANNEL, ACCOUNT, f"g{chat}", "group", random.choice(("", "", "t1", "t2")))
        mark = STRANGER if strange else "q" if mentioned else "o"
        text = "/stop" if random.random() < plan.stops else f"{mark}{number}"
        self.updates.append(Inbound(str(number), "message", address, Sender(who, who), text, mentioned=mentioned))
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

    def __init__(self, platform: Platform, life: Life) -> None:
        self.limits = Limits(
            text=1000, formats=("html", "plain"), per_second=30, per_chat_s=0.2, idempotent=platform.plan.idempotent
        )
        self._platform, self._life = platform, life

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        """Poll for ever; the cursor moves behind what was received."""
        platform = self._platform
        while True:
            self._life.go_on()
            batch = platform.batch()
            if not batch:
                platform.arrived.clear()
                await platform.arrived.wait()
                continue
            for _, event in batch:
                await receive(event)
                self._life.go_on()
            platform.cursor = max(platform.cursor, max(at for at, _ in batch) + 1)

    async def send(self, message: Outbound) -> str:
        platform, plan, life = self._platform, self._platform.plan, self._life
        life.go_on()
        began = platform.clock.monotonic()
        await platform.clock.sleep(platform.random.random() * 0.3)
        life.go_on()
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
        life.go_on()
        await platform.clock.sleep(platform.random.random() * 0.2)
        life.go_on()
        if platform.chance(plan.lost / 2):
            raise SendFailed("unsure", "cut before the answer")
        return number
