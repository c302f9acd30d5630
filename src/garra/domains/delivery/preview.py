"""What a chat sees of one run until its answer: a window that grows, or blocks of the answer, typing, a reaction.

Feed it the run's events; `settle` it when the run has ended, then write the answer with what it gives; then `finish`.
Whatever fails in here, the answer goes its own way.
"""

from __future__ import annotations

import asyncio

from garra.core import blocks
from garra.core.blocks import Arrived, Began, Grew, Late, Send, Unwritten
from garra.core.chunking import Blocks
from garra.core.errors import GarraError
from garra.core.events import MessageStarted, MessageUpdated, RunBody, RunEnded, RunEvent
from garra.core.messages import Assistant
from garra.core.outward import outward
from garra.core.pieces import pieces
from garra.core.progress import mood
from garra.core.value import frozen
from garra.domains.delivery.draft import Draft
from garra.domains.delivery.replies import Settings, forms, frame
from garra.domains.delivery.signs import MOODS, Reaction, Typing
from garra.domains.delivery.window import Stage, Window, landed
from garra.sdk.channel import Address


@frozen
class Settled:
    """What the answer has to know. `text` is what is left to say of it, empty where all went out already; `window` is
    the message that becomes its first part, `number` counts the messages of it that went before.
    """

    text: str
    window: str = ""
    number: int = 0


class Preview:
    """One run in one chat. `anchor` is the platform's id of the message it answers."""

    def __init__(self, stage: Stage, run_id: str, address: Address, settings: Settings, *, anchor: str = "") -> None:
        self._settings = settings
        self._run_id = run_id
        self._line = None if settings.blocks is None else _Line(stage, run_id, address, settings, anchor=anchor)
        self._window = Window(stage, run_id, address, settings, anchor=anchor)
        self._typing = Typing(stage.channel, address, clock=stage.clock, spawn=stage.spawn)
        self._reaction = Reaction(stage.channel, address, anchor, clock=stage.clock, spawn=stage.spawn)
        self._given = ""

    def start(self) -> None:
        """The message is taken up."""
        if self._settings.typing:
            self._typing.start()
        if self._settings.ack or self._settings.moods:
            self._reaction.show(self._settings.ack or MOODS["seen"])

    def feed(self, event: RunEvent) -> None:
        """An event of any run; those of others are passed over."""
        if event.run_id != self._run_id:
            return
        if self._settings.moods and (now := mood(event.body)) is not None:
            self._reaction.show(MOODS[now])
        if self._line is not None:
            self._line.feed(event.body)
        else:
            self._window.feed(event.body)

    async def settle(self, reply: str) -> Settled:
        """The run has ended with `reply`. Nothing in the chat changes from here on but by the answer."""
        self._typing.stop()
        if self._line is not None:
            return self._line.settle(reply)
        window = await self._window.settle()
        self._given = window if self._settings.progress.mode in {"partial", "block"} and reply.strip() else ""
        return Settled(reply, self._given)

    def finish(self, *, answered: bool) -> None:
        """The answer is in the outbox, or there is none (`answered` false)."""
        self._typing.stop()
        self._window.finish(became_answer=bool(self._given) and answered, answered=answered)


class _Line:
    """Blocks of an answer on their way, one after the other."""

    def __init__(self, stage: Stage, run_id: str, address: Address, settings: Settings, *, anchor: str) -> None:
        self._stage, self._run_id, self._address, self._settings, self._anchor = (
            stage,
            run_id,
            address,
            settings,
            anchor,
        )
        self._state = blocks.State(settings.blocks or Blocks())
        self._text = ""
        self._number = 0
        self._closed = False
        self._held: Send | None = None

    def feed(self, body: RunBody) -> None:
        match body:
            case MessageStarted(Assistant()):
                self._text = ""
                self._step(Began())
            case MessageUpdated(_, text) if text.startswith(self._text):
                grown, self._text = text[len(self._text) :], text
                self._step(Grew(grown))
            case MessageUpdated() | RunEnded():
                self._closed = True
            case _:
                pass

    def _step(self, event: blocks.Event) -> None:
        if self._closed and not isinstance(event, Arrived | Late | Unwritten):
            return
        state, sends = blocks.step(self._state, event)
        if self._closed and sends:
            return
        self._state = state
        for send in sends:
            self._stage.spawn(self._send(send), f"block {send.number} of {self._run_id}")

    async def _pause(self, send: Send) -> bool:
        """Wait as a person would between two messages. Whether the block is still to go out by itself."""
        least, most = self._settings.pause_ms
        if not send.number or not most:
            return True
        self._held = send
        await self._stage.clock.sleep((least + (most - least) * self._stage.chance()) / 1000)
        waited, self._held = self._held is send, None
        return waited

    async def _send(self, send: Send) -> None:
        if not await self._pause(send):
            return
        drafts = self._drafts(outward(send.text).text)
        self._number += len(drafts)
        try:
            async with asyncio.timeout(self._settings.block_s):
                rows = await landed(self._stage, drafts)
        except TimeoutError:
            self._step(Late())
        except GarraError:
            self._number -= len(drafts)
            self._step(Unwritten(send.text))
        else:
            self._step(Arrived() if all(row.state == "sent" for row in rows) else Late())

    def _drafts(self, text: str) -> list[Draft]:
        held = frame(self._stage.channel.limits, self._settings)
        to = self._anchor if self._settings.anchor != "off" else ""
        return [
            Draft(
                f"out:{self._run_id}:{number}",
                self._address,
                forms(piece, held.formats),
                reply_to=to if number == 0 or self._settings.anchor == "all" else "",
                position=number,
                run_id=self._run_id,
            )
            for number, piece in enumerate(pieces(self._stage.read(text), held), start=self._number)
        ]

    def settle(self, reply: str) -> Settled:
        self._closed = True
        if self._held is not None:  # nobody waits for the end of an answer: what is held back goes out with it
            send, self._held = self._held, None
            self._step(Unwritten(send.text))
        return Settled(blocks.rest(self._state, reply), number=self._number)
