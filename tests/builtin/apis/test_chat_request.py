"""The bytes of a chat-completions request."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from garra.builtin.apis.openai_completions.dialect import Dialect, of, without
from garra.builtin.apis.openai_completions.request import Writer
from garra.core import failures
from garra.core.messages import Assistant, Image, Message, Text, Thinking, ToolCall, ToolResult, User
from garra.sdk.exchange import CLOSE, OPEN
from garra.sdk.model import Model, ModelRequest, ToolSpec

MODEL = Model("p", "m", "openai-completions", "http://x/v1")
READ = ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def user(text: str) -> User:
    return User((Text(text),), 1)


def call(name: str = "read", call_id: str = "c1") -> Assistant:
    return Assistant((ToolCall(call_id, name, {"path": "a"}),), 2)


def request(*messages: Message, **more: Any) -> ModelRequest:
    return ModelRequest(more.pop("model", MODEL), "system words", messages, **more)


async def whole(asked: ModelRequest, how: Dialect, writer: Writer | None = None) -> bytes:
    return b"".join(await (writer or Writer()).body(asked, how))


async def written(asked: ModelRequest, dialect: Dialect | None = None, writer: Writer | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b"".join(await (writer or Writer()).body(asked, dialect or of(asked.model))))
    return found


async def test_the_plain_form() -> None:
    body = await written(request(user("hi"), tools=(READ,), max_tokens=99, temperature=0.5))
    assert body["messages"] == [{"role": "system", "content": "system words"}, {"role": "user", "content": "hi"}]
    assert body["model"] == "m"
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert (body["max_completion_tokens"], body["temperature"]) == (99, 0.5)
    assert body["tools"][0]["function"]["name"] == "read"
    assert list(body)[-1] == "messages"


async def test_calls_and_results() -> None:
    result = ToolResult("c1", "read", (Text("words"),), 3)
    body = await written(request(user("hi"), call(), result, ToolResult("c2", "read", (), 4)))
    assert body["messages"][2] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}},
        ],
    }
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "c1", "content": "words"}
    assert body["messages"][4]["content"] == "(no output)"


async def test_pictures_of_tools_follow_their_batch() -> None:
    shot = Image("image/png", "QUJD")
    body = await written(
        request(
            user("look"),
            call(),
            ToolResult("c1", "read", (shot,), 3),
            ToolResult("c2", "read", (Text("b"),), 4),
            User((Text("and this"), shot), 5),
        )
    )
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user", "user"]
    assert body["messages"][3]["content"] == "(see the picture)"
    assert body["messages"][5]["content"][1]["image_url"]["url"] == "data:image/png;base64,QUJD"
    assert body["messages"][6]["content"][0] == {"type": "text", "text": "and this"}
    alone = await written(request(user("look"), call(), ToolResult("c1", "read", (shot,), 3)))
    assert alone["messages"][-1]["role"] == "user"


@pytest.mark.req("LOOP-11")
async def test_each_request_begins_with_the_one_before_up_to_its_tail() -> None:
    writer = Writer()
    asked = request(user("one"), tools=(READ,), session="s", tail="it is 10:00")
    first = await whole(asked, of(MODEL), writer)
    longer = (*asked.messages, Assistant((Text("answer"),), 2), user("two"))
    second = await whole(replace(asked, messages=longer, tail="it is 10:01"), of(MODEL), writer)
    prefix = first[: first.index(json.dumps(OPEN).encode()[1:20]) - len(b'{"role":"user","content":"')]
    assert len(prefix) > 200
    assert second.startswith(prefix)
    assert b"10:00" not in second
    assert await whole(replace(asked, messages=longer, tail="it is 10:01"), of(MODEL)) == second


async def test_a_changed_history_is_written_anew() -> None:
    writer = Writer()
    await writer.body(request(user("one"), user("two"), session="s"), of(MODEL))
    body = await written(request(user("another"), user("two"), session="s"), writer=writer)
    assert [message["content"] for message in body["messages"][1:]] == ["another", "two"]
    shorter = await written(request(user("another"), session="s"), writer=writer)
    assert len(shorter["messages"]) == 2


async def test_what_is_remembered_is_bounded() -> None:
    writer = Writer(room=10)
    for name in ("a", "b", "c"):
        assert len((await written(request(user("x" * 50), session=name), writer=writer))["messages"]) == 2
    assert len(writer._written) == 1


async def test_the_tail_is_a_marked_message_or_merged_into_the_last_one() -> None:
    marked = f"{OPEN}\nnow\n{CLOSE}"
    assert (await written(request(user("hi"), tail="now")))["messages"][-1] == {"role": "user", "content": marked}
    merging = Dialect(tail="merge")
    assert (await written(request(user("hi"), tail="now"), merging))["messages"][-1]["content"] == f"hi\n\n{marked}"
    after = await written(request(user("hi"), call(), ToolResult("c1", "read", (Text("r"),), 3), tail="now"), merging)
    assert after["messages"][-1]["role"] == "tool"
    pictured = await written(request(User((Text("a"), Image("image/png", "QQ==")), 1), tail="now"), merging)
    assert pictured["messages"][-1]["content"][-1] == {"type": "text", "text": marked}
    assert (await written(request(tail="now"), merging))["messages"][-1]["content"] == marked


async def test_quirks_of_providers() -> None:
    model = replace(MODEL, reasoning=True)
    told = {
        "maxTokensField": "max_tokens",
        "supportsUsageInStreaming": False,
        "supportsDeveloperRole": True,
        "requiresStringContent": True,
        "requiresToolResultName": True,
        "requiresReasoningContentOnAssistantMessages": True,
        "supportsPromptCacheKey": True,
        "extraBody": {"provider": {"sort": "price"}},
    }
    model = replace(model, compat=told)
    answer = Assistant((Thinking("hm"), Text("said"), ToolCall("c1", "read", {})), 2)
    picture = User((Text("look"), Image("image/png", "QQ==")), 1)
    asked = request(
        picture, answer, ToolResult("c1", "read", (Text("r"),), 3), model=model, session="s", thinking="xhigh"
    )
    body = await written(asked)
    assert body["max_tokens"] == MODEL.max_tokens
    assert "stream_options" not in body
    assert (body["reasoning_effort"], body["prompt_cache_key"]) == ("high", "s")
    assert body["provider"] == {"sort": "price"}
    assert body["messages"][0]["role"] == "developer"
    assert body["messages"][1]["content"] == "look"
    assert body["messages"][2]["reasoning_content"] == "hm"
    assert body["messages"][3]["name"] == "read"


@pytest.mark.parametrize(
    ("style", "field"),
    [
        ("openrouter", {"reasoning": {"effort": "low"}}),
        ("together", {"reasoning": {"enabled": True}}),
        ("qwen", {"enable_thinking": True}),
        ("qwen-chat-template", {"chat_template_kwargs": {"enable_thinking": True}}),
        ("zai", {"thinking": {"type": "enabled"}}),
        ("other", {}),
    ],
)
async def test_ways_to_switch_thinking_on(style: str, field: dict[str, Any]) -> None:
    model = replace(MODEL, reasoning=True, compat={"thinkingFormat": style})
    body = await written(request(user("hi"), model=model, thinking="minimal"))
    assert {name: body[name] for name in field} == field


async def test_a_model_without_tools_reads_results_as_words() -> None:
    body = await written(request(user("hi"), call(), ToolResult("c1", "read", (Text("r"),), 3)), Dialect(tools=False))
    assert body["messages"][2] == {"role": "assistant", "content": ""}
    assert body["messages"][3] == {"role": "user", "content": "Result of read:\nr"}


@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("Unsupported parameter: 'max_completion_tokens'", {"limit_field": "max_tokens"}),
        ("Unrecognized request argument supplied: stream_options", {"usage": False}),
        ("role 'developer' is not known", {"developer": False}),
        ("Unsupported value: 'temperature' does not support 0", {"temperature": False}),
        ("unknown field reasoning_effort", {"thinking": ""}),
        ("unknown field prompt_cache_key", {"cache_key": False}),
        ("tool_choice is not supported", {"tool_choice": False}),
        ("Conversation roles must alternate user/assistant/user", {"tail": "merge"}),
        ("Unexpected role 'user' after role 'tool'", {"tail": "merge"}),
        ("messages[1].content must be a string", {"plain_content": True}),
        ("llama2 does not support tools", {"tools": False}),
        ("content may not be null", {"null_content": False}),
    ],
)
def test_what_a_server_refuses_is_left_out(said: str, change: dict[str, Any]) -> None:
    rich = Dialect(developer=True, thinking="openai", cache_key=True)
    plainer = without(rich, failures.refused(400, said))
    assert plainer == replace(rich, **change)


def test_a_refusal_that_names_nothing_stands() -> None:
    assert without(Dialect(), failures.refused(400, "no")) is None
    assert without(Dialect(), failures.refused(429, "max_tokens")) is None
    assert without(Dialect(temperature=False), failures.refused(400, "temperature")) is None


def test_the_limits_field_is_tried_by_both_names_then_left_out() -> None:
    first = without(Dialect(), failures.refused(400, "'max_completion_tokens' is unknown"))
    assert first is not None
    assert first.limit_field == "max_tokens"
    other = without(first, failures.refused(400, "'max_tokens' is not supported. Use 'max_completion_tokens' instead."))
    assert other is not None
    assert other.limit_field == "max_completion_tokens"
    unknown = without(first, failures.refused(400, "unknown field max_tokens"))
    assert unknown is not None
    assert unknown.limit_field == ""
    assert without(unknown, failures.refused(400, "max_tokens")) is None


async def test_what_the_owner_wants_in_the_body_is_there() -> None:
    told = {"chat_template_kwargs": {"enable_thinking": False}, "extra_body": {"top_k": 5, "stream": True}, "other": 1}
    body = await written(request(user("hi"), model=replace(MODEL, compat={"params": told})))
    assert (body["chat_template_kwargs"], body["top_k"]) == ({"enable_thinking": False}, 5)
    assert "other" not in body
    odd = {"chat_template_kwargs": 1, "extraBody": []}
    assert "chat_template_kwargs" not in await written(
        request(user("hi"), model=replace(MODEL, compat={"params": odd}))
    )
