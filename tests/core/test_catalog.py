"""Whose word counts of a model, and what servers say of theirs."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core import catalog

ROUTER: dict[str, Any] = {
    "providers": [
        {
            "id": "openai", "displayName": "OpenAI", "openaiCompatible": True, "nativeBaseUrl": "/v1/native/openai",
            "models": [
                {"id": "openai/gpt-5.5", "upstream": "gpt-5.5", "capabilities": ["llm.responses", "llm.chat"],
                 "pricing": {"inputMicrosPerMillion": 1_250_000, "maxInputTokens": 400_000,
                             "defaultMaxOutputTokens": 9}},
                {"id": "openai/old", "upstream": "old", "capabilities": ["llm.chat"], "displayName": "Old one"},
                {"id": "openai/pictures", "upstream": "x", "capabilities": ["image"]},
                {"id": "openai/odd", "capabilities": ["llm.chat"]},
            ],
        },
        {
            "id": "anthropic", "nativeBaseUrl": "/v1/native/anthropic",
            "routes": [{"path": "/v1/messages", "requestFormat": "anthropic.messages", "methods": ["POST"]}],
            "models": [{"id": "anthropic/claude-x", "upstream": "claude-x", "capabilities": ["llm.messages"],
                        "supportedReasoningEfforts": ["low"]}],
        },
        {
            "id": "google", "nativeBaseUrl": "/v1/native/google",
            "routes": [{"path": "/x", "requestFormat": "google.generate_content", "methods": ["POST"]},
                       {"path": "/v1beta/models/${model}:streamGenerateContent", "methods": ["POST"],
                        "requestFormat": "google.generate_content"}],
            "models": [{"id": "google/gemini-x", "upstream": "gemini-x", "capabilities": ["llm.stream"]}],
        },
        {"id": "none", "nativeBaseUrl": "/v1/native/none", "routes": 3, "models": [
            {"id": "none/x", "upstream": "x", "capabilities": ["llm.stream"]}, 7]},
        {"id": "far", "nativeBaseUrl": "https://evil.example", "models": [{"id": "a", "upstream": "a"}]},
        "nonsense",
    ]
}  # fmt: skip


@pytest.mark.req("MODEL-04")
def test_the_owner_first_then_the_box_then_the_server_then_a_preview() -> None:
    owner = {"name": "Mine", "cost": {"input": 1.0}, "compat": {"a": 1}}
    box = {"name": "Box", "context_window": 5, "cost": {"input": 9.0, "output": 2.0}, "reasoning": False}
    server = {"context_window": 7, "max_tokens": 8, "reasoning": True, "compat": {"a": 2, "b": 2}}
    preview = {"max_tokens": 9, "input": ("text",), "api": ""}
    assert catalog.merged((owner, box, server, preview)) == {
        "name": "Mine", "cost": {"input": 1.0, "output": 2.0}, "compat": {"a": 1, "b": 2}, "context_window": 5,
        "max_tokens": 8, "reasoning": False, "input": ("text",),
    }  # fmt: skip
    assert catalog.merged(({"name": None}, {"name": "x"})) == {"name": "x"}


def test_a_list_in_openais_form() -> None:
    body = {"data": [{"id": "a"}, {"id": "b", "max_model_len": 8}, {"name": "c", "meta": {"n_ctx": 9}}, {"x": 1}, 3]}
    assert catalog.listed(body) == {"a": {}, "b": {"context_window": 8}, "c": {"context_window": 9}}
    assert catalog.listed({"models": [{"name": "m"}]}) == {"m": {}}
    assert catalog.listed([{"id": "t"}]) == {"t": {}}
    assert catalog.listed("no") == {}
    assert catalog.listed({"data": 3}) == {}


def test_what_openrouter_says() -> None:
    row = {
        "id": "x/y", "name": "Y", "context_length": 100, "top_provider": {"max_completion_tokens": 10},
        "architecture": {"input_modalities": ["text", "image", "file"]}, "supported_parameters": ["reasoning"],
        "pricing": {"prompt": "0.000002", "completion": "0.00001", "input_cache_read": "free", "input_cache_write": []},
    }  # fmt: skip
    assert catalog.listed({"data": [row]})["x/y"] == {
        "name": "Y", "context_window": 100, "max_tokens": 10, "reasoning": True, "input": ("text", "image"),
        "cost": {"input": 2.0, "output": 10.0},
    }  # fmt: skip


@pytest.mark.req("MODEL-21")
def test_what_a_key_of_a_router_may_use() -> None:
    found = catalog.granted(ROUTER, "https://r.example/v1/")
    ways = {name: (row["api"], row["base_url"], row["compat"]) for name, row in found.items()}
    assert ways == {
        "openai/gpt-5.5": ("openai-responses", "https://r.example/v1", {}),
        "openai/old": ("openai-completions", "https://r.example/v1", {}),
        "anthropic/claude-x": ("anthropic-messages", "https://r.example/v1/native/anthropic",
                               {"upstreamModel": "claude-x"}),
        "google/gemini-x": ("google-generative-ai", "https://r.example/v1/native/google/v1beta",
                            {"upstreamModel": "gemini-x"}),
    }  # fmt: skip
    first = found["openai/gpt-5.5"]
    assert (first["context_window"], first["max_tokens"], first["cost"]) == (400_000, 9, {"input": 1.25})
    assert (first["reasoning"], first["input"], first["name"]) == (True, ("text", "image"), "OpenAI · openai/gpt-5.5")
    assert (found["openai/old"]["reasoning"], found["openai/old"]["name"]) == (False, "Old one")
    assert found["openai/old"]["context_window"] == 200_000
    assert catalog.granted([], "https://r.example") == {}


def test_what_a_key_may_spend() -> None:
    usage = {"budget": {"limitMicros": 10_000_000, "spentMicros": 2_500_000}}
    assert catalog.budget(usage) == {"limit": 10.0, "spent": 2.5}
    assert catalog.budget({"budget": {"spentMicros": 1}}) == {}
    assert catalog.budget(None) == {}
