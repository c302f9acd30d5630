"""Thinking, caches and quirks, family by family, as they stand in the request."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from garra.core.messages import Assistant, Text, Thinking, ToolCall, ToolResult, User
from garra.sdk.model import Level, ModelRequest
from garra.testing.model_server import Raw
from tests.contracts.model.traffic import Stand, stand


async def body(at: Stand, request: ModelRequest) -> Any:
    at.plays("text")
    await at.api.stream(request, "k").result()
    return at.asked()


THINKING: list[tuple[str, str, Level, str, Any]] = [
    ("openai-responses", "m", "off", "reasoning", {"effort": "none"}),
    ("openai-responses", "m", "xhigh", "reasoning", {"effort": "xhigh", "summary": "auto"}),
    ("google-generative-ai", "gemini-2.5-pro", "off", "thinkingConfig", {"thinkingBudget": 128}),
    ("google-generative-ai", "gemini-2.5-flash", "off", "thinkingConfig", {"thinkingBudget": 0}),
    (
        "google-generative-ai", "gemini-2.5-pro", "medium", "thinkingConfig",
        {"includeThoughts": True, "thinkingBudget": 8_192},
    ),
    ("google-generative-ai", "gemini-3.7-flash", "off", "thinkingConfig", {"thinkingLevel": "minimal"}),
    (
        "google-generative-ai", "gemini-3.1-pro-preview", "minimal", "thinkingConfig",
        {"includeThoughts": True, "thinkingLevel": "low"},
    ),
    (
        "google-generative-ai", "gemini-3.7-flash", "xhigh", "thinkingConfig",
        {"includeThoughts": True, "thinkingLevel": "high"},
    ),
    ("ollama", "qwen3", "off", "think", False),
    ("ollama", "qwen3", "low", "think", True),
    ("ollama", "gpt-oss:20b", "xhigh", "think", "high"),
    ("mistral-conversations", "mistral-small-latest", "low", "reasoning_effort", "high"),
    ("mistral-conversations", "magistral-medium-latest", "low", "prompt_mode", "reasoning"),
    ("mistral-conversations", "mistral-small-latest", "off", "reasoning_effort", None),
    ("bedrock-converse-stream", "anthropic.claude-x", "off", "additionalModelRequestFields", None),
    (
        "bedrock-converse-stream", "anthropic.claude-x", "low", "additionalModelRequestFields",
        {"thinking": {"type": "enabled", "budget_tokens": 2_048}},
    ),
    ("bedrock-converse-stream", "amazon.nova-pro-v1:0", "low", "additionalModelRequestFields", None),
]  # fmt: skip


@pytest.mark.parametrize(("family", "model", "level", "field", "value"), THINKING)
async def test_levels_of_thinking(family: str, model: str, level: Level, field: str, value: Any) -> None:
    async with stand(family) as at:
        sent = await body(at, at.request(model=replace(at.model, id=model), thinking=level))
        sent = sent.get("generationConfig", sent)
        assert sent.get(field) == value
        plain = await body(at, at.request(model=replace(at.model, id=model, reasoning=False), thinking=level))
        assert field not in plain.get("generationConfig", plain)


async def test_claude_on_bedrock_thinks_as_much_as_it_likes() -> None:
    async with stand("bedrock-converse-stream") as at:
        model = replace(at.model, compat={"thinkingFormat": "adaptive"})
        sent = await body(at, at.request(model=model, thinking="xhigh", temperature=0.5))
        assert sent["additionalModelRequestFields"] == {
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "max"},
        }
        assert "temperature" not in sent["inferenceConfig"]


@pytest.mark.parametrize(
    ("family", "params", "sent"),
    [
        ("openai-responses", {}, {"prompt_cache_key": "s"}),
        ("openai-responses", {"cacheRetention": "none"}, {}),
        ("openai-responses", {"cacheRetention": "long"}, {"prompt_cache_key": "s", "prompt_cache_retention": "24h"}),
        ("google-generative-ai", {"cachedContent": "cachedContents/1"}, {"cachedContent": "cachedContents/1"}),
        ("ollama", {"num_ctx": 8_192, "keep_alive": "10m", "other": 1}, {"keep_alive": "10m"}),
    ],
)
async def test_what_the_owner_says_of_caches(family: str, params: dict[str, Any], sent: dict[str, Any]) -> None:
    async with stand(family) as at:
        model = replace(at.model, compat={"params": params, "supportsPromptCacheRetention": True})
        told = await body(at, at.request(model=model, session="s"))
        names = ("prompt_cache_key", "prompt_cache_retention", "cachedContent", "keep_alive", "other")
        assert {name: told[name] for name in names if name in told} == sent
        if family == "ollama":
            assert told["options"]["num_ctx"] == 8_192


@pytest.mark.parametrize(("kept", "ttl"), [("short", None), ("long", "1h"), ("none", "")])
async def test_claude_marks_what_may_be_cached(kept: str, ttl: str | None) -> None:
    async with stand("anthropic-messages") as at:
        model = replace(at.model, compat={"params": {"cacheRetention": kept}})
        sent = await body(at, at.request(model=model))
        marks = [sent["system"][-1], sent["tools"][-1], sent["messages"][-1]["content"][-1]]
        told = {"type": "ephemeral", **({"ttl": ttl} if ttl else {})} if ttl != "" else None
        assert [mark.get("cache_control") for mark in marks] == [told] * 3


async def test_chatgpts_own_server_is_told_less() -> None:
    async with stand("openai-responses") as at:
        model = replace(at.model, compat={"chatgpt": True})
        sent = await body(at, replace(at.request(model=model), system=""))
        assert "max_output_tokens" not in sent
        assert sent["instructions"]
        assert sent["store"] is False


REFUSALS = [
    ("openai-responses", "Unsupported parameter: 'prompt_cache_key' is not supported.", "prompt_cache_key"),
    ("openai-responses", "Unsupported parameter: 'max_output_tokens' is not supported here.", "max_output_tokens"),
    ("google-generative-ai", "Thinking budget is not supported for this model.", "thinkingConfig"),
    ("ollama", '"m" does not support thinking', "think"),
    ("ollama", '"m" does not support tools', "tools"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "line", "field"), REFUSALS)
async def test_what_a_server_refuses_by_name_is_left_out_from_then_on(family: str, line: str, field: str) -> None:
    async with stand(family) as at:
        at.server.then(Raw((json.dumps({"error": {"message": line}}).encode(),), 400, "application/json"))
        request = at.request(thinking="low", session="s")
        await body(at, request)
        await body(at, request)
        first, *others = (seen.raw for seen in at.server.requests)
        assert f'"{field}"'.encode() in first
        assert len(others) == 2
        assert all(f'"{field}"'.encode() not in raw for raw in others)


async def test_a_refusal_that_names_nothing_is_not_tried_again() -> None:
    for family in ("openai-responses", "google-generative-ai", "ollama", "bedrock-converse-stream"):
        async with stand(family) as at:
            at.server.then(Raw((b'{"error":{"message":"no"},"message":"no"}',), 400, "application/json"))
            assert (await at.api.stream(at.request(), "k").result()).stop == "error"
            assert len(at.server.requests) == 1


async def test_gemini_gets_each_signature_back_on_its_part() -> None:
    async with stand("google-generative-ai") as at:
        calls = (ToolCall("a", "read", {}), ToolCall("b", "read", {}))
        answer = Assistant(
            (Thinking("hm"), Thinking("", "one"), Text("words"), Thinking("", "two"), *calls, Thinking("", "three")),
            2, "google-generative-ai", "v", "m",
        )  # fmt: skip
        results = (ToolResult("a", "read", (Text("A"),), 3), ToolResult("b", "read", (Text("B"),), 3, is_error=True))
        sent = await body(at, at.request(User((Text("hi"),), 1), answer, *results))
        assert sent["contents"][1]["parts"] == [
            {"text": "words", "thoughtSignature": "one"},
            {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "two"},
            {"functionCall": {"name": "read", "args": {}}},
            {"text": "", "thoughtSignature": "three"},
        ]
        assert [part["functionResponse"]["response"] for part in sent["contents"][2]["parts"]] == [
            {"output": "A"},
            {"error": "B"},
        ]


async def test_mistral_hears_its_thoughts_and_stays_where_it_was() -> None:
    async with stand("mistral-conversations") as at:
        answer = Assistant((Thinking("hm"), Text("yes")), 2, "mistral-conversations", "v", "m")
        asked = (User((Text("hi"),), 1), answer, User((Text("and?"),), 3))
        sent = await body(at, at.request(*asked, session="s", tail="now"))
        assert sent["messages"][2]["content"] == [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": "yes"},
        ]
        assert sent["messages"][3]["content"].startswith("and?")
        assert at.server.requests[-1].headers["x-affinity"] == "s"
        assert "stream_options" not in sent


@pytest.mark.parametrize(
    "family", ["openai-responses", "google-generative-ai", "ollama", "bedrock-converse-stream", "anthropic-messages"]
)
async def test_nothing_said_is_still_a_request(family: str) -> None:
    async with stand(family) as at:
        for tail in ("", "now"):
            sent = await body(at, replace(at.request(tail=tail), messages=(), system="", tools=()))
            listed = sent.get("input") or sent.get("contents") or sent["messages"]
            assert len(listed) == 1
            assert listed[0]["role"] == "user"


async def test_an_answer_that_is_not_streamed_is_read_too() -> None:
    whole = {
        "id": "r", "object": "response", "status": "completed",
        "output": [
            {"type": "reasoning", "id": "rs", "summary": [{"text": "hm"}], "encrypted_content": "enc"},
            {"type": "message", "content": [{"type": "output_text", "text": "yes"}]},
            {"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"path":"a"}'},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }  # fmt: skip
    async with stand("openai-responses") as at:
        at.server.then(Raw((json.dumps(whole).encode(),), kind="application/json"))
        found = await at.api.stream(at.request(), "k").result()
        assert (found.text, found.stop, found.usage.total) == ("yes", "toolUse", 7)
        assert found.calls[0].arguments == {"path": "a"}
        assert any(isinstance(part, Thinking) and part.text == "hm" and part.signature for part in found.content)
    async with stand("google-generative-ai") as at:
        listed = [{"candidates": [{"content": {"parts": [{"text": "yes"}]}, "finishReason": "STOP"}]}]
        at.server.then(Raw((json.dumps(listed).encode(),), kind="application/json"))
        assert (await at.api.stream(at.request(), "k").result()).text == "yes"
