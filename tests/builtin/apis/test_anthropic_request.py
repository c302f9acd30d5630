"""The bytes of an Anthropic request, and what its answers hold."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from garra.builtin.apis.anthropic_messages.answer import Reader
from garra.builtin.apis.anthropic_messages.request import Writer
from garra.core.errors import FailureKind, RunFailed
from garra.core.messages import Assistant, Image, Message, Text, Thinking, ToolCall, ToolResult, Usage, User
from garra.core.sse import Event
from garra.sdk.alternating import REDACTED, call_id
from garra.sdk.model import Model, ModelRequest, ToolSpec
from garra.sdk.stream import Stream

MODEL = Model("p", "m", "anthropic-messages", "http://x", reasoning=True, max_tokens=8_000)
READ = ToolSpec("read", "Read a file.", {"type": "object"})
CACHED = {"type": "ephemeral"}


def user(text: str) -> User:
    return User((Text(text),), 1)


def request(*messages: Message, **more: Any) -> ModelRequest:
    return ModelRequest(MODEL, "system words", messages, **more)


async def whole(asked: ModelRequest, how: str, writer: Writer | None = None) -> bytes:
    return b"".join(await (writer or Writer()).body(asked, how))


async def written(asked: ModelRequest, writer: Writer | None = None, style: str = "enabled") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b"".join(await (writer or Writer()).body(asked, style)))
    return found


async def test_the_plain_form() -> None:
    body = await written(request(user("hi"), tools=(READ,), temperature=0.2, tail="now"))
    assert body["system"] == [{"type": "text", "text": "system words", "cache_control": CACHED}]
    assert body["tools"][-1]["cache_control"] == CACHED
    assert (body["max_tokens"], body["temperature"]) == (8_000, 0.2)
    [only] = body["messages"]
    assert only["content"][0] == {"type": "text", "text": "hi", "cache_control": CACHED}
    assert "now" in only["content"][1]["text"]


async def test_a_pdf_goes_as_a_document() -> None:
    body = await written(request(User((Image("application/pdf", "QQ=="), Text("total?")), 1)))
    source = {"type": "base64", "media_type": "application/pdf", "data": "QQ=="}
    assert body["messages"][0]["content"][0] == {"type": "document", "source": source}


async def test_results_follow_their_calls_in_one_message() -> None:
    answer = Assistant((Text("ok"), ToolCall("a.1", "read", {"p": 1}), ToolCall("b", "read", {})), 2)
    results = (
        ToolResult("a.1", "read", (Text("x"), Image("image/png", "QQ==")), 3),
        ToolResult("b", "read", (), 3, is_error=True),
    )
    body = await written(request(user("hi"), answer, *results, user("and?")))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][1]["content"][1] == {"type": "tool_use", "id": "a_1", "name": "read", "input": {"p": 1}}
    first, second, third = body["messages"][2]["content"]
    assert (first["tool_use_id"], first["content"][1]["source"]["data"]) == ("a_1", "QQ==")
    assert (second["is_error"], second["content"]) == (True, [{"type": "text", "text": "(no output)"}])
    assert third["text"] == "and?"
    assert call_id("!" * 80) == "_" * 64


async def test_thoughts_go_back_with_their_signatures_only() -> None:
    answer = Assistant((Thinking("hm", "sig"), Thinking("no"), Thinking("", REDACTED + "abc"), Text("a"), Text(" ")), 2)
    content = (await written(request(user("hi"), answer, user("b"))))["messages"][1]["content"]
    assert content == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "abc"},
        {"type": "text", "text": "a"},
    ]


@pytest.mark.req("LOOP-11")
async def test_all_up_to_the_last_answer_stays_the_same() -> None:
    writer = Writer()
    asked = request(user("one"), Assistant((Text("a"),), 2), user("two"), session="s", tail="10:00", tools=(READ,))
    first = await whole(asked, "enabled", writer)
    longer = (*asked.messages, Assistant((Text("b"),), 3), user("three"))
    second = await whole(replace(asked, messages=longer, tail="10:01"), "enabled", writer)
    shared = first[: first.index(b'{"role":"user","content":[{"type":"text","text":"two"')]
    assert second.startswith(shared)
    assert second == await whole(replace(asked, messages=longer, tail="10:01"), "enabled")
    assert (
        json.loads(await whole(replace(asked, messages=(user("new"),)), "enabled", writer))["messages"][0]["role"]
        == "user"
    )
    small = Writer(room=1)
    for name in ("a", "b"):
        await small.body(replace(asked, session=name), "enabled")
    assert len(small._written) == 1


async def test_odd_histories_are_still_accepted() -> None:
    assert (await written(request(Assistant((Text("a"),), 2), user("b"))))["messages"][0]["role"] == "user"
    assert (await written(request()))["messages"][0]["role"] == "user"
    assert (await written(request(tail="now")))["messages"][0]["content"][0]["type"] == "text"


async def test_ways_to_switch_thinking_on() -> None:
    asked = request(user("hi"), thinking="high", temperature=0.5)
    body = await written(asked)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 6_976}
    assert "temperature" not in body
    assert (await written(asked, style="adaptive"))["output_config"] == {"effort": "high"}
    assert "thinking" not in await written(asked, style="")
    assert "thinking" not in await written(replace(asked, max_tokens=1_500))


def event(kind: str, **body: Any) -> Event:
    return Event(kind, json.dumps({"type": kind, **body}).encode())


def read(*events: Event) -> Assistant:
    reader, stream = Reader(), Stream(Assistant((), 0))
    for item in events:
        for delta in reader.feed(item):
            stream.push(delta)
        for part, signature in reader.signatures:
            stream.draft.sign(part, signature)
        reader.signatures.clear()
    stop, usage = reader.ending()
    return Assistant(stream.draft.parts(), 0, stop=stop, usage=usage, response_id=reader.response_id)


START = event("message_start", message={"id": "m1", "usage": {"input_tokens": 5, "cache_read_input_tokens": 3}})


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[Event]:
    grown = [event("content_block_delta", index=index, delta=delta) for delta in deltas]
    return [event("content_block_start", index=index, content_block=start), *grown]


def stop(reason: str = "end_turn") -> list[Event]:
    return [event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 7}), event("message_stop")]


def test_an_answer_with_everything() -> None:
    message = read(
        START,
        event("ping"),
        *block(
            0,
            {"type": "thinking"},
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "s"},
        ),
        *block(1, {"type": "redacted_thinking", "data": "abc"}),
        *block(2, {"type": "text", "text": "So"}, {"type": "text_delta", "text": " yes"}),
        *block(
            3, {"type": "tool_use", "id": "t", "name": "ls"}, {"type": "input_json_delta", "partial_json": '{"a":1}'}
        ),
        *block(4, {"type": "tool_use", "id": "t", "name": "ls", "input": {"b": 2}}),
        *block(5, {"type": "unknown"}, {"type": "unknown_delta"}),
        *stop(),
    )
    assert message.content == (
        Thinking("hm", "s"),
        Thinking("", REDACTED + "abc"),
        Text("So yes"),
        ToolCall("t", "ls", {"a": 1}),
        ToolCall("t_4", "ls", {"b": 2}),
    )
    assert (message.stop, message.response_id, message.usage) == ("toolUse", "m1", Usage(5, 7, 3, 0))


@pytest.mark.req("MODEL-19")
def test_without_message_stop_it_is_cut() -> None:
    with pytest.raises(RunFailed) as caught:
        read(START, *block(0, {"type": "text"}, {"type": "text_delta", "text": "par"}))
    assert caught.value.failure.kind is FailureKind.CUT


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([START, *stop()], FailureKind.EMPTY),
        ([START, *block(0, {"type": "text", "text": "x"}), *stop("refusal")], FailureKind.FILTERED),
        ([event("error", error={"type": "overloaded_error", "message": "Overloaded"})], FailureKind.OVERLOADED),
        ([event("error", error={"type": "rate_limit_error", "message": "slow down"})], FailureKind.RATE_LIMIT),
        ([Event("x", b"{broken")], FailureKind.CUT),
        ([Event("x", b"7")], FailureKind.CUT),
    ],
)
def test_what_is_no_answer(events: list[Event], kind: FailureKind) -> None:
    with pytest.raises(RunFailed) as caught:
        read(*events)
    assert caught.value.failure.kind is kind


@pytest.mark.parametrize(
    ("reason", "found"), [("max_tokens", "length"), ("stop_sequence", "stop"), ("new_one", "stop")]
)
def test_stop_reasons(reason: str, found: str) -> None:
    assert read(START, *block(0, {"type": "text", "text": "x"}), *stop(reason)).stop == found
