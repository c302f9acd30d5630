"""One process of the world: the real inbox, engine, outbox, courier and owner; lanes as the kernel drives them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import TypeVar

from garra.core import lanes
from garra.core.errors import GarraError
from garra.domains.delivery.courier import Courier, Route
from garra.domains.delivery.draft import Draft, Form
from garra.domains.delivery.engine import Embedded, Job
from garra.domains.delivery.inbox import Inbox, InboxRow
from garra.domains.delivery.ledger import Ledger
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.owner import Owner
from garra.domains.delivery.pace import Pace
from garra.domains.delivery.timeline import Timeline
from garra.io.tasks import Tasks
from garra.sdk.channel import Address, Identity, Ignored, Inbound
from tests.simulation.world import ACCOUNT, CHANNEL, OWNER, Disk, Line, Platform, Store

T = TypeVar("T")
Chat = tuple[str, str]


class Pulse:
    """Nobody watches."""

    def alive(self) -> None: ...

    def connected(self, me: Identity) -> None: ...

    def note(self, line: str) -> None: ...


class Process:
    """It runs from `start` to `kill`."""

    def __init__(self, disk: Disk, platform: Platform, random: Random) -> None:
        clock = platform.clock
        self.tasks = Tasks()
        self.store = Store(disk, clock, random, platform.plan)
        self.line = Line(platform)
        self.inbox = Inbox(self.store, clock)
        self.outbox = Outbox(self.store, clock)
        self.timeline = Timeline(self.store, clock)
        self.ledger = Ledger(self.store, self.inbox, self.outbox, self.timeline)
        self.owner = Owner(self.inbox, self.outbox, _home, clock=clock, spawn=self.tasks)
        self.engine = Embedded(self.inbox, clock, self.tasks)
        pace = Pace(self.line.limits, clock)
        self.courier = Courier(self.line, Route(CHANNEL, ACCOUNT, self.outbox, pace, clock, self.tasks))
        self._random, self._clock, self._plan = random, clock, platform.plan
        self._lanes: dict[Chat, lanes.State] = {}
        self._rows: dict[str, InboxRow] = {}

    def start(self) -> None:
        self.tasks(self._work(), "kernel")
        self.tasks(self.courier.run(), "courier")
        self.tasks(self._links(), "links")
        self.tasks(self._poll(), "poll")

    async def kill(self, *, power_cut: bool) -> None:
        """As SIGKILL: nothing of it does anything any more."""
        self.line.dead = True
        self.store.end(power_cut=power_cut)
        await self.tasks.close()

    async def _links(self) -> None:
        """The link comes up after a while, and goes now and then."""
        while True:
            await self._clock.sleep(self._random.random() * 3)
            self.courier.up()
            await self._clock.sleep(5 + self._random.random() * 20)
            if not self.store.healed:
                self.courier.down()

    async def _poll(self) -> None:
        while True:
            await self._clock.sleep(self._random.random())
            try:
                await self.line.run(self._receive, Pulse())
            except GarraError:
                continue

    async def _receive(self, event: Inbound | Ignored) -> None:
        await self.inbox.accept(event)

    async def _work(self) -> None:
        resumed: dict[str, list[InboxRow]] = {}
        for row in await self._again(self.engine.start):
            resumed.setdefault(row.run_id, []).append(row)
        await self._again(lambda: self.owner.start(self.ledger))
        for run_id, rows in resumed.items():
            self._arrive(rows[0], run_id)
            for row in rows[1:]:
                self._arrive(row, f"run-{row.id}")
        while True:
            job = await self._again(self.engine.next)
            await self._take(job)

    async def _take(self, job: Job) -> None:
        if self._random.random() < 0.05 and not self.store.healed:
            await self._again(lambda: self.engine.retry(job, self._random.random() * 5))
            return
        run_id = f"run-{job.row.id}"
        row = await self._again(lambda: self.engine.adopted(job, run_id, f"agent:main:{job.event.address.chat}"))
        self._arrive(row, run_id)

    async def _again(self, step: Callable[[], Awaitable[T]]) -> T:
        """What a kernel does when the disk refuses: the same again, later."""
        while True:
            try:
                return await step()
            except GarraError as error:
                if not error.retryable:
                    raise
                await self._clock.sleep(0.3)

    def _arrive(self, row: InboxRow, run_id: str) -> None:
        self._rows[row.id] = row
        item = lanes.Item(row.id, self._clock.now_ms(), mode=self._plan.mode)
        self._step(_chat(row), lanes.Arrived(item))

    def _step(self, chat: Chat, event: lanes.Event) -> None:
        state = self._lanes.get(chat, lanes.State(lanes.Settings(debounce_ms=300)))
        self._lanes[chat], effects = lanes.step(state, event)
        for effect in effects:
            self._carry(chat, effect)

    def _carry(self, chat: Chat, effect: lanes.Effect) -> None:
        match effect:
            case lanes.Start(items):
                self.tasks(self._run(chat, [self._rows[item.id] for item in items]), "run")
            case lanes.Wake(at_ms):
                self.tasks(self._woken(chat, at_ms), "wake")
            case lanes.Dropped(item, reason):
                raise AssertionError(f"{item.id} was dropped: {reason}")
            case _:
                pass

    async def _woken(self, chat: Chat, at_ms: int) -> None:
        await self._clock.sleep((at_ms - self._clock.now_ms()) / 1000)
        self._step(chat, lanes.Woke(self._clock.now_ms()))

    async def _run(self, chat: Chat, rows: list[InboxRow]) -> None:
        """Answer these messages: a model thinks, then the answer is written in one or more parts."""
        first = rows[0]
        await self._again(lambda: self.timeline.note_all([row.id for row in rows], "model"))
        await self._clock.sleep(self._random.random() * 4)
        drafts = _answer(first, rows)
        await self._again(lambda: self.outbox.put(drafts, inbox_id=first.id, also=[row.id for row in rows[1:]]))
        self._step(chat, lanes.Ended(self._clock.now_ms()))


async def _home(about: Address) -> Address:
    return replace(about, chat=OWNER, thread="", kind="direct")


def _chat(row: InboxRow) -> Chat:
    assert row.event.address is not None
    return row.event.address.chat, row.event.address.thread


def _answer(first: InboxRow, rows: list[InboxRow]) -> list[Draft]:
    """An answer names each message it answers, in as many parts as there are."""
    address = first.event.address
    assert address is not None
    return [
        Draft(
            f"out:{row.id}",
            address,
            (Form("html", f"<i>{row.event.text}"), Form("plain", row.event.text)),
            position=position,
        )
        for position, row in enumerate(rows)
        if isinstance(row.event, Inbound)
    ]
