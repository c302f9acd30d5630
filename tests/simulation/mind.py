"""The one part that is played: what a model says. It thinks a while, calls a tool now and then, and fails now and then;
in the end it names every word that it was asked and has not answered yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from random import Random

from garra.agent.calls import Tools, Update
from garra.core import resuming
from garra.core.errors import Failure, FailureKind, RunFailed
from garra.core.events import CallDelta, TextDelta
from garra.core.messages import Assistant, Message, Text, ToolCall, ToolResult, User
from garra.runs.history import Histories
from garra.sdk.model import Model
from garra.sdk.ports import Clock
from garra.sdk.stream import Stream
from tests.core import strict
from tests.simulation.life import Life
from tests.simulation.world import STRANGER, Plan

WORD = re.compile(r"\bq\d+\b")
"""What somebody asks. What is only overheard, and what a stranger says, begins otherwise."""

MODELS = tuple(Model("sim", name, "sim", "http://localhost") for name in ("first", "second"))
TOOLS = {"look": "parallel", "write": "sequential"}


def asked(messages: Sequence[Message]) -> list[str]:
    """The words that no answer came to yet, in order. Who is to go on behind a broken answer answers the same ones."""
    words: list[str] = []
    if messages and messages[-1].text == resuming.NOTE:
        messages = messages[:-2]
    for message in messages:
        match message:
            case User() if "idempotencyKey" in message.meta:
                words += WORD.findall(message.text.rpartition("[Current message")[2])
            case Assistant(stop="stop") if not message.calls:
                words.clear()
            case _:
                pass
    return list(dict.fromkeys(words))


@dataclass
class Provider:
    """The same for all processes. `faults` are requests that a strict one would have refused."""

    clock: Clock
    random: Random
    plan: Plan
    healed: bool = False
    calls: int = 0
    faults: list[str] = field(default_factory=list)

    def check(self, messages: Sequence[Message]) -> None:
        for wire, signs in ((strict.openai(messages), "openai"), (strict.anthropic(messages), "anthropic")):
            if (fault := strict.fault(wire, signatures=signs)) is not None:
                self.faults.append(fault)
        if any(STRANGER in message.text for message in messages):
            self.faults.append("a stranger's words reached a model")


class Mind:
    """What one process asks the provider."""

    def __init__(self, provider: Provider, life: Life) -> None:
        self._provider, self._life = provider, life
        self._histories = Histories()

    def asker(self, transcript: object) -> Callable[[Model, tuple[Message, ...]], Stream]:
        """As `runs.drive.Setup.ask`, with the history made valid as the program makes it."""
        history = self._histories.of(transcript, UTC)

        def ask(model: Model, messages: tuple[Message, ...]) -> Stream:
            self._provider.check(history.request(messages, model))
            now = self._provider.clock.now_ms()
            stream = Stream(Assistant((), now, api=model.api, provider=model.provider, model=model.id))
            stream.start(self._life, lambda: self._think(stream, messages), "model")
            return stream

        return ask

    async def _think(self, stream: Stream, messages: tuple[Message, ...]) -> None:
        provider, random, plan = self._provider, self._provider.random, self._provider.plan
        self._life.go_on()
        await provider.clock.sleep(random.random() * 4)
        self._life.go_on()
        if random.random() < plan.fails and not provider.healed:
            stream.push(TextDelta(0, "I was about to"))
            raise RunFailed(Failure(FailureKind.SERVER, "the model's server failed (500)"))
        if random.random() < plan.calls and not isinstance(messages[-1], ToolResult):
            for at in range(random.choice((1, 1, 2))):
                provider.calls += 1
                stream.push(CallDelta(at, f"call_{provider.calls}", random.choice(list(TOOLS)), "{}"))
            stream.done("toolUse")
            return
        stream.push(TextDelta(0, f"re: {' '.join(asked(messages))}"))
        stream.done("stop")

    @property
    def tools(self) -> Tools:
        return Tools({"look": "parallel", "write": "sequential"}, self._call)

    async def _call(self, call: ToolCall, update: Update) -> ToolResult:
        provider = self._provider
        self._life.go_on()
        await provider.clock.sleep(provider.random.random() * 2)
        self._life.go_on()
        failed = provider.random.random() < provider.plan.fails
        return ToolResult(call.id, call.name, (Text("it is done"),), provider.clock.now_ms(), is_error=failed)
