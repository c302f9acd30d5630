"""A platform whose messages can be changed, and a chat on it as a person sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from garra.core.events import RunBody, RunEvent
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.domains.delivery.courier import Courier, Route
from garra.domains.delivery.draft import OutboxRow
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.pace import Pace
from garra.domains.delivery.preview import Preview, Settled
from garra.domains.delivery.replies import Extra, Replies, Settings
from garra.domains.delivery.window import Stage
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.sdk.channel import Address, Limits, Outbound, Pulse, Receive
from garra.testing.clock import ManualClock
from tests.domains.delivery.parts import address, clock, database

TELEGRAM = Limits(4_000, "utf16", ("telegram-html", "plain"), per_second=0, edits_per_s=1.0)
RUN = "r1"


@dataclass
class Chat:
    """What the channel was asked, and what stands in the chat. `plan` says how calls of a method end, in turn."""

    limits: Limits = TELEGRAM
    calls: list[tuple[str, str]] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    sent: list[Outbound] = field(default_factory=list)
    edits: list[Outbound] = field(default_factory=list)
    plan: dict[str, list[BaseException | None]] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        """Nothing comes in."""

    async def _asked(self, method: str, text: str) -> None:
        self.calls.append((method, text))
        for words, gate in self.gates.items():
            if words in text:
                await gate.wait()
        fault = self.plan[method].pop(0) if self.plan.get(method) else None
        if fault is not None:
            raise fault

    async def send(self, message: Outbound) -> str:
        await self._asked("send", message.text)
        self.sent.append(message)
        number = str(len(self.sent))
        self.shown[number] = message.text
        return number

    async def edit(self, message_id: str, message: Outbound) -> None:
        await self._asked("edit", message.text)
        self.edits.append(message)
        self.shown[message_id] = message.text

    async def delete(self, address: Address, message_id: str) -> None:
        await self._asked("delete", message_id)
        self.shown.pop(message_id, None)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        await self._asked("react", emoji)

    async def type(self, address: Address) -> None:
        await self._asked("type", "")

    def count(self, method: str) -> int:
        return sum(name == method for name, _ in self.calls)


@dataclass
class Scene:
    """A run in a chat: events in, the answer out through the outbox."""

    chat: Chat
    time: ManualClock
    box: Outbox
    stage: Stage
    tasks: Tasks
    replies: Replies
    courier: Courier
    db: Database
    seq: int = 0

    def preview(self, settings: Settings, run_id: str = RUN) -> Preview:
        preview = Preview(self.stage, run_id, address(), settings, anchor="m1")
        preview.start()
        return preview

    async def happen(self, preview: Preview, *bodies: RunBody, after: float = 0.0) -> None:
        """Events come, and then so many seconds pass."""
        for body in bodies:
            self.seq += 1
            ids = RunId(RUN), SessionKey("k"), SessionId("s"), AgentId("main")
            preview.feed(RunEvent(*ids, self.seq, self.time.now_ms(), body))
        await self.passes(after)

    async def passes(self, seconds: float, step: float = 0.25) -> None:
        await self.quiet()
        for _ in range(round(seconds / step)):
            await self.time.advance(step)
            await self.quiet()

    async def quiet(self) -> None:
        """Until what was begun is stored, and what follows from that: the store's thread may be slow."""
        for _ in range(6):
            await asyncio.sleep(0.001)
            await self.db.write(lambda _: None)

    async def answer(self, preview: Preview, reply: str, settings: Settings, **extra: Any) -> Settled:
        settled = await preview.settle(reply)
        more = Extra(window=settled.window, number=settled.number, **extra)
        drafts = self.replies.drafts(
            RUN, address(), settled.text, limits=self.chat.limits, settings=settings, anchor="m1", extra=more
        )
        await self.box.put(drafts)
        preview.finish(answered=bool(drafts) or settled.number > 0)
        await self.passes(3)
        return settled

    async def rows(self, *numbers: object) -> list[OutboxRow]:
        return [await self.box.get(f"out:{RUN}:{number}") for number in numbers]


@asynccontextmanager
async def scene(folder: Path, limits: Limits = TELEGRAM, clean: Callable[[str], str] = str) -> AsyncIterator[Scene]:
    db: Database = database(folder)
    await db.open()
    chat, tasks, time, replies = Chat(limits), Tasks(), clock(), Replies()
    box, pace = Outbox(db, time), Pace(limits, time)
    courier = Courier(chat, Route("test", "main", box, pace, time, tasks))
    tasks(courier.run(), "courier")
    courier.up()
    stage = Stage(chat, box, pace, time, tasks, replies.read, clean)
    try:
        yield Scene(chat, time, box, stage, tasks, replies, courier, db)
    finally:
        await tasks.close()
        await db.close()
