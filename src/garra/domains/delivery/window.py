"""The one message that shows a run at work: sent through the outbox, then changed in place, at the platform's pace."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, cast

from garra.core import progress
from garra.core.errors import GarraError
from garra.core.events import RunBody
from garra.core.markup import Block, Document, Span, literal
from garra.core.pieces import pieces
from garra.core.progress import View
from garra.core.value import frozen
from garra.domains.delivery.draft import Draft, Form, OutboxRow
from garra.domains.delivery.pace import Pace
from garra.domains.delivery.replies import Read, Settings, frame
from garra.sdk.channel import Address, Channel, Deletes, Edits, Outbound, SendFailed
from garra.sdk.ports import Clock, Spawn, Task

SETTLE_S = 5.0
EDIT_S = 20.0
PATIENCE = 3
STOPPED = "Stopped."


class Box(Protocol):
    """As much of the outbox as previews need."""

    def subscribe(self, listener: Callable[[OutboxRow], None]) -> Callable[[], None]: ...

    async def put(self, messages: Sequence[Draft]) -> list[OutboxRow]: ...

    async def get(self, key: str) -> OutboxRow: ...

    async def drop(self, key: str) -> OutboxRow: ...


def _same(text: str) -> str:
    return text


@frozen
class Stage:
    """What previews of one account work with. `read` makes a document of Markdown, `clean` blots secrets out.

    `chance` is a number from 0 to 1. `settle_s`: so long an answer waits for a change of its window that is on its way.
    """

    channel: Channel
    outbox: Box
    pace: Pace
    clock: Clock
    spawn: Spawn
    read: Read
    clean: Callable[[str], str] = _same
    settle_s: float = SETTLE_S
    chance: Callable[[], float] = random.random


async def landed(stage: Stage, drafts: Sequence[Draft]) -> list[OutboxRow]:
    """Put drafts, and wait until each of them is sent, unsure or dead."""
    waiting = {draft.key: asyncio.get_running_loop().create_future() for draft in drafts}

    def heard(row: OutboxRow) -> None:
        future = waiting.get(row.key)
        if future is not None and not future.done() and row.state in {"sent", "unsure", "dead"}:
            future.set_result(row)

    end = stage.outbox.subscribe(heard)
    try:
        for row in await stage.outbox.put(drafts):
            heard(row)
        return [await future for future in waiting.values()]
    finally:
        end()


class Window:
    """A run's window. It never raises and never holds up the answer for longer than `settle_s`."""

    def __init__(self, stage: Stage, run_id: str, address: Address, settings: Settings, *, anchor: str = "") -> None:
        self._stage, self._address, self._settings, self._anchor = stage, address, settings, anchor
        self._run_id = run_id
        self._key = f"out:{run_id}:window"
        self._state = progress.State(settings.progress, stage.clock.now_ms())
        self._limits = stage.channel.limits
        self._id = ""
        self._view = View()
        self._failures = 0
        self._changed_at: float | None = None
        self._closing = False
        self._stray = False
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: Task | None = None
        self._alarm: Task | None = None

    def feed(self, body: RunBody) -> None:
        """What the run does; cheap, for every word."""
        if self._closing or self._settings.progress.mode == "off":
            return
        before = self._state
        self._state = progress.step(before, body, self._stage.clock.now_ms())
        if self._state is not before and (self._task is not None or self._worth()):
            self._task = self._task or self._stage.spawn(self._work(), f"preview {self._run_id}")
            self._wake.set()

    def _worth(self) -> bool:
        return progress.due_at(self._state) is not None or len(self._state.text) >= progress.FIRST

    async def settle(self) -> str:
        """Change it no more. The platform's id of the message that is there; empty where there is none."""
        self._closing = True
        if self._alarm is not None:
            self._alarm.cancel()
        if self._settings.progress.mode == "off":
            return ""
        if not self._idle.is_set():
            if not self._id:
                await self._withdraw()
            await self._quiet()
        return self._id or await self._earlier()

    async def _withdraw(self) -> None:
        """Take it back, if it waits for the link."""
        try:
            await self._stage.outbox.drop(self._key)
        except GarraError:
            return

    async def _quiet(self) -> None:
        try:
            async with asyncio.timeout(self._stage.settle_s):
                await self._idle.wait()
        except TimeoutError:
            if not self._id:
                self._stray = True
            elif self._task is not None:
                self._task.cancel()

    async def _earlier(self) -> str:
        """The window that an earlier process opened for this run."""
        try:
            row = await self._stage.outbox.get(self._key)
        except GarraError:
            return ""
        if row.state == "sent":
            self._id = row.platform_id
        return self._id

    def finish(self, *, became_answer: bool, answered: bool) -> None:
        """The answer is in the outbox, or there is none. What is left of the window is brought to its end."""
        if self._id and not became_answer:
            self._stage.spawn(self._collapse(answered=answered), f"preview {self._run_id} ends")

    async def _collapse(self, *, answered: bool) -> None:
        showing = self._settings.progress.mode == "progress"
        if not (answered and showing and self._settings.keep) and await self._removed():
            return
        line = progress.summary(self._state, self._stage.clock.now_ms()) if showing else STOPPED
        await self._stage.pace.turn(self._address)
        await self._edit(literal(line))

    async def _removed(self) -> bool:
        if not hasattr(self._stage.channel, "delete"):
            return False
        channel = cast(Deletes, self._stage.channel)
        return await self._tried(partial(channel.delete, self._address, self._id)) is None

    # ---- at work

    async def _work(self) -> None:
        while not self._closing and self._failures < PATIENCE:
            await self._wake.wait()
            self._wake.clear()
            wait = self._wait()
            if wait is None or self._closing:
                continue
            if wait > 0 or (self._id and not self._stage.pace.take(self._address)):
                self._ring(max(wait, self._stage.pace.delay(self._address), 0.05))
                continue
            self._idle.clear()
            try:
                await self._show()
            finally:
                self._idle.set()
            self._wake.set()
        if self._stray and self._id:
            await self._removed()

    def _wait(self) -> float | None:
        """Seconds until there is something new to show and it may be shown; None when there is nothing."""
        now_ms = self._stage.clock.now_ms()
        view = progress.view(self._state, now_ms)
        due = progress.due_at(self._state)
        later = None if due is None or due <= now_ms else (due - now_ms) / 1000
        if view.empty or view == self._view:
            return later
        if self._changed_at is None or self._limits.edits_per_s <= 0:
            return 0.0
        return max(0.0, self._changed_at + 1 / self._limits.edits_per_s - self._stage.clock.monotonic())

    def _ring(self, seconds: float) -> None:
        if self._alarm is None or self._alarm.done():
            self._alarm = self._stage.spawn(self._later(seconds), f"preview {self._run_id} waits")

    async def _later(self, seconds: float) -> None:
        await self._stage.clock.sleep(seconds)
        self._wake.set()

    async def _show(self) -> None:
        view = progress.view(self._state, self._stage.clock.now_ms())
        document = self._document(view)
        if self._id:
            await self._edit(document)
        else:
            await self._open(document)
        self._view, self._changed_at = view, self._stage.clock.monotonic()

    def _document(self, view: View) -> Document:
        lines = (Block(spans=(Span(self._stage.clean(line)),), close=True) for line in view.lines)
        return (*(self._stage.read(view.text) if view.text else ()), *lines)

    def _forms(self, document: Document) -> tuple[Form, ...]:
        """As much as one message holds."""
        held = frame(self._limits, self._settings)
        cut = pieces(document, held)
        return tuple(Form(*pair) for pair in zip(held.formats, cut[0].texts, strict=True)) if cut else ()

    async def _open(self, document: Document) -> None:
        forms = self._forms(document)
        if not forms:
            return
        anchor = self._anchor if self._settings.anchor != "off" else ""
        quiet = self._settings.progress.mode == "progress"
        draft = Draft(self._key, self._address, forms, anchor, silent=quiet, purpose="preview", run_id=self._run_id)
        row = (await landed(self._stage, [draft]))[0]
        if row.state == "sent":
            self._id = row.platform_id
        else:
            self._failures = PATIENCE

    async def _edit(self, document: Document) -> None:
        channel = cast(Edits, self._stage.channel)
        for form in self._forms(document):
            message = Outbound(self._key, self._address, form.text, form.format)
            fault = await self._tried(partial(channel.edit, self._id, message))
            if fault is None or fault.fault != "format":
                break

    async def _tried(self, call: Callable[[], Awaitable[None]]) -> SendFailed | None:
        """Do it; what went wrong, if anything did. A platform that says "later" is obeyed."""
        try:
            async with asyncio.timeout(EDIT_S):
                await call()
        except SendFailed as fault:
            if fault.retry_after_s is not None:
                self._stage.pace.hold(fault.retry_after_s)
            if fault.fault != "format":
                self._failures = PATIENCE if fault.fault in {"gone", "refused", "auth"} else self._failures + 1
            return fault
        except (GarraError, TimeoutError) as error:
            self._failures += 1
            return SendFailed("unsure", str(error))
        self._failures = 0
        return None
