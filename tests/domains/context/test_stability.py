"""What a provider's prompt cache sees: ten turns with tools, each request a byte prefix of the next."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from garra.agent.loop import Loop, run
from garra.core.budget import Document
from garra.core.messages import Message, Text, User, message_json
from garra.domains.context.prompt import Prompt, Prompts, Stable, Turn, sections
from garra.domains.context.stamps import Stamps, zone
from garra.io.tasks import Tasks
from garra.sdk.stream import Stream
from garra.testing.clock import ManualClock
from garra.testing.model import ScriptedModel, calls, says
from garra.testing.tools import FakeTools


@dataclass(frozen=True)
class Sent:
    """One request: what stays, and the volatile end."""

    stable: bytes
    tail: str


def render(prompt: Prompt, messages: tuple[Message, ...]) -> Sent:
    parts = [{"role": "system", "content": prompt.system}, *(message_json(message) for message in messages)]
    return Sent(b"\n".join(json.dumps(part, ensure_ascii=False).encode() for part in parts), prompt.tail)


@pytest.fixture
async def texts() -> Mapping[str, str]:
    return await asyncio.to_thread(sections)


async def chat(texts: Mapping[str, str], stables: list[Stable]) -> list[Sent]:
    """One turn for each of `stables`, minutes apart, each with a tool call; what was sent."""
    sent: list[Sent] = []
    history: list[Message] = []
    prompts, clock = Prompts(texts), ManualClock()
    stamps = Stamps(await asyncio.to_thread(zone, "Europe/Berlin"))
    async with Tasks() as tasks:
        for number, stable in enumerate(stables):
            prompt = prompts.build(stable, Turn(now=f"minute {number}"))
            model = ScriptedModel([calls("look", {"n": number}), says(f"Done {number}.")])

            def ask(messages: tuple[Message, ...], prompt: Prompt = prompt, model: ScriptedModel = model) -> Stream:
                seen = stamps.apply(messages)
                sent.append(render(prompt, seen))
                return model(seen)

            loop = Loop(
                history=tuple(history),
                stream=ask,
                clock=clock,
                spawn=tasks,
                prompts=(User((Text(f"question {number}"),), clock.now_ms()),),
                tools=FakeTools({"look": f"seen {number}"}).tools,
            )
            history += (await run(loop, lambda _: None)).messages
            await clock.advance(60)
    return sent


@pytest.mark.req("LOOP-11")
async def test_each_request_is_a_prefix_of_the_next(texts: Mapping[str, str]) -> None:
    stable = Stable(tools=("look",), files=(Document("SOUL.md", "/w", "me"),), time_zone="Europe/Berlin")
    sent = await chat(texts, [replace(stable) for _ in range(10)])
    assert len(sent) == 20
    for one, following in itertools.pairwise(sent):
        assert following.stable.startswith(one.stable)
    assert len({one.tail for one in sent}) == 10
    assert b"CEST] question 9" in sent[-1].stable


async def test_an_edited_file_changes_the_prefix_once(texts: Mapping[str, str]) -> None:
    first = Stable(tools=("look",), files=(Document("SOUL.md", "/w", "me"),))
    second = replace(first, files=(Document("SOUL.md", "/w", "another me"),))
    sent = await chat(texts, [first, first, second, second])
    breaks = [not after.stable.startswith(before.stable) for before, after in itertools.pairwise(sent)]
    assert breaks == [False, False, False, True, False, False, False]
