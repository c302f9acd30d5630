"""Has a model sum up messages, in pieces that each fit. Nothing is stored here; what fails gives no summary."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Final, Protocol

from garra.agent.cancel import Cancel
from garra.core import summary
from garra.core.blots import Blots
from garra.core.compaction import Limits, Room
from garra.core.errors import FailureKind, GarraError
from garra.core.messages import Assistant, Message, Text, User
from garra.core.spending import Payer
from garra.core.value import frozen
from garra.sdk.model import EventStream, Level, Model, ModelRequest
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

THOUGHT: Final = 4_096
"""Tokens that a model may think beside what it writes."""
AWAY: Final = frozenset({"error", "aborted"})


class Models(Protocol):
    """The models."""

    def stream(self, request: ModelRequest) -> EventStream: ...


@frozen
class Task:
    """What is to be summed up. `messages` are `sizes` characters large; `before` is the summary of what stands before
    them, `focus` what the person wants told most. `models` are asked in order, each for `timeout_s` a piece.
    """

    messages: Sequence[Message]
    sizes: Sequence[int]
    room: Room
    models: Sequence[Model]
    before: str = ""
    focus: str = ""
    timeout_s: float = 180.0
    thinking: Level = "low"
    session: str = ""
    payer: Payer | None = None


@frozen
class Summariser:
    """`window` is how many tokens a model really takes; `may` whether a call may be paid for."""

    models: Models
    clock: Clock
    blots: Callable[[], Blots]
    window: Callable[[Model], int]

    async def sum_up(self, task: Task, cancel: Cancel) -> str:
        """The summary; empty where there is none. Never raises for a model's faults."""
        for model in task.models:
            if cancel.is_set:
                return ""
            try:
                if text := await self._by(model, task, cancel):
                    return text
            except GarraError as error:
                log.warning("%s cannot sum up: %s", model.ref, error.message)
        return ""

    async def _by(self, model: Model, task: Task, cancel: Cancel) -> str:
        """All pieces by one model, each told the summary of those before it."""
        window = self.window(model)
        room = Room(Limits(window, window), 0, task.room.ratio, task.room.keep)
        plan = await asyncio.to_thread(summary.pieces, task.messages, task.sizes, room)
        told = task.before
        for mark in plan.marks:
            piece = await asyncio.to_thread(summary.read, task.messages, mark, plan.limit, room)
            answer = await self._ask(model, task, summary.request(piece, before=told, focus=task.focus), cancel)
            told = "" if answer is None else summary.usable(answer.text, task.room)
            if not told:
                return ""
        return told

    async def _ask(self, model: Model, task: Task, words: str, cancel: Cancel) -> Assistant | None:
        """One request; None where it failed, was stopped or took too long."""
        blots = self.blots()
        message = User((Text(blots.text(words)),), self.clock.now_ms())
        level = task.thinking if model.reasoning else "off"
        most = task.room.summary + (THOUGHT if level != "off" else 0)
        request = ModelRequest(
            model, await asyncio.to_thread(instructions), (message,), max_tokens=min(most, model.max_tokens),
            thinking=level, session=f"{task.session}-summary", payer=task.payer,
        )  # fmt: skip
        stream = self.models.stream(request)
        detach = cancel.attach(stream.abort)
        try:
            async with asyncio.timeout(task.timeout_s):
                answer = await stream.result()
        except TimeoutError:
            log.warning("%s did not sum up within %g s", model.ref, task.timeout_s)
            return None
        finally:
            detach()
            stream.abort()
        if answer.stop in AWAY:
            log.warning("%s did not sum up: %s", model.ref, answer.error or FailureKind.UNKNOWN.value)
            return None
        return answer


@cache
def instructions() -> str:
    """What a model that sums up is told. Reads a file, once."""
    return (resources.files(__package__) / "prompts" / "summary.md").read_text("utf-8").strip()
