"""Which model is meant, and what is known of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, get_args

import pytest

from garra.config.sections.models import Api as Family
from garra.core.errors import NotFound
from garra.sdk.model import Cost
from tests.domains.models.desk import Desk, desk


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with desk() as ready:
        yield ready


@pytest.mark.req("MODEL-03")
async def test_the_first_slash_parts_provider_and_model(at: Desk) -> None:
    model = at.models.resolve("openrouter/anthropic/x")
    assert (model.provider, model.id, model.ref) == ("openrouter", "anthropic/x", "openrouter/anthropic/x")


async def test_other_names_of_a_model(at: Desk) -> None:
    at.configure({"agents": {"defaults": {"models": {"zhipu/glm-5.2": {"alias": "Fast"}}}}})
    assert at.models.resolve("fast").ref == "zhipu/glm-5.2"
    assert at.models.resolve("zai/glm-5.2").ref == "zhipu/glm-5.2"
    assert at.models.resolve("groq").ref == "groq/openai/gpt-oss-120b"
    assert at.models.resolve("groq/").ref == "groq/openai/gpt-oss-120b"
    assert at.models.resolve("gpt-6-sol").ref == "openai/gpt-6-sol"
    assert at.models.resolve("/data/x.gguf").ref == "local//data/x.gguf"


async def test_the_agents_own_model_comes_first(at: Desk) -> None:
    agents: dict[str, Any] = {
        "defaults": {"model": "openai/gpt-5.4"},
        "list": [{"id": "coder", "model": "xai/grok-4.7"}],
    }
    at.configure({"agents": agents})
    assert at.models.resolve(None, "coder").ref == "xai/grok-4.7"
    assert at.models.resolve(None, "main").ref == "openai/gpt-5.4"
    assert at.models.resolve().ref == "openai/gpt-5.4"
    assert at.models.resolve("groq", "coder").provider == "groq"


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("nosuch/x", "no provider 'nosuch'"),
        ("gpt-nope", "write it as provider/model"),
        ("claude-sonnet-5x", "see `garra models list`"),
        ("ollama", "no default model"),
        ("bare/x", r"models\.providers\.bare\.baseUrl"),
        (None, "no model is set"),
    ],
)
async def test_what_cannot_be_meant_is_said(at: Desk, ref: str | None, words: str) -> None:
    at.configure({"models": {"providers": {"bare": {"models": []}}}})
    with pytest.raises(NotFound, match=words):
        at.models.resolve(ref)


async def test_a_name_that_two_providers_have_is_asked_back(at: Desk) -> None:
    at.configure(at.provider(models=[{"id": "kimi-k3", "name": "K"}]))
    with pytest.raises(NotFound, match="fake/kimi-k3, moonshot/kimi-k3"):
        at.models.resolve("kimi-k3")


@pytest.mark.req("MODEL-04")
async def test_the_owners_word_wins_field_by_field(at: Desk) -> None:
    row = {"id": "gpt-5.4", "name": "Mine", "cost": {"input": 1}, "compat": {"maxTokensField": "max_tokens"}}
    at.configure({"models": {"providers": {"openai": {"apiKey": "k", "models": [row]}}}})
    model = at.models.resolve("openai/gpt-5.4")
    assert (model.name, model.cost) == ("Mine", Cost(1, 15, 0.25, 0))
    assert (model.context_window, model.max_tokens, model.reasoning) == (1_050_000, 128_000, True)
    assert model.compat["maxTokensField"] == "max_tokens"
    assert model.compat["supportsDeveloperRole"] is True
    assert model.base_url == "https://api.openai.com/v1"


async def test_quirks_belong_to_an_address(at: Desk) -> None:
    at.configure({"models": {"providers": {"openai": {"baseUrl": "http://mine/v1"}}}})
    assert at.models.resolve("openai/gpt-5.4").compat == {}


async def test_only_the_owners_providers_with_replace(at: Desk) -> None:
    at.configure({"models": {"mode": "replace", **at.provider(models=[{"id": "m", "name": "M"}])["models"]}})
    assert [row.ref for row in at.models.rows()] == ["fake/m"]


async def test_small_windows_get_the_short_prompt(at: Desk) -> None:
    at.configure(at.provider(models=[{"id": "m", "name": "M", "contextWindow": 8_000, "contextTokens": 6_000}]))
    model = at.models.resolve("fake/m")
    assert (model.prompt, model.context_window, model.max_tokens) == ("lite", 6_000, 1_500)
    assert at.models.resolve("fake/other").prompt == "full"


async def test_what_a_server_says_of_its_window_counts(at: Desk) -> None:
    at.models.learn("ollama/m", 8_192)
    assert (at.models.resolve("ollama/m").context_window, at.models.resolve("ollama/m").prompt) == (8_192, "lite")
    at.models.learn("ollama/m", 40_000)
    assert at.models.resolve("ollama/m").prompt == "full"
    at.configure(at.provider("ollama", models=[{"id": "m", "name": "M", "contextWindow": 16_000}]))
    assert at.models.resolve("ollama/m").context_window == 16_000


async def test_a_way_out_of_its_own(at: Desk) -> None:
    at.configure(at.provider(proxy="http://p:1", caFile="/ca.pem"))
    assert at.models.resolve("fake/m").via.proxy == "http://p:1"
    at.configure(at.provider(request={"proxy": {"mode": "explicit-proxy", "url": "http://q:1"}}))
    assert at.models.resolve("fake/m").via.proxy == "http://q:1"


async def test_rows_say_what_can_be_used(at: Desk) -> None:
    at.env["GROQ_API_KEY"] = "g"
    at.models.installed = frozenset({"smollm2"})
    at.configure(at.provider(models=[{"id": "m", "name": "M"}]))
    usable = [row.ref for row in at.models.rows() if row.available]
    assert usable[0] == "fake/m"
    assert {ref.split("/")[0] for ref in usable} == {"fake", "groq", "local"}
    assert "local/qwen2.5-coder-1.5b" not in usable
    row = next(row for row in at.models.rows() if row.ref == "groq/openai/gpt-oss-20b")
    assert row.thinking_levels[-1] == "xhigh"
    assert (row.configured, row.context_window) == (False, 131_072)


async def test_every_shipped_provider_is_whole(at: Desk) -> None:
    names = set(at.models.entries())
    assert names >= {
        "anthropic", "openai", "openrouter", "google", "mistral", "deepseek", "groq", "together", "xai", "moonshot",
        "zhipu", "qwen", "minimax", "ollama", "lm-studio", "vllm", "llama.cpp", "litellm-proxy", "local",
        "amazon-bedrock", "google-vertex", "azure-openai-responses",
    }  # fmt: skip
    for entry in at.models.entries().values():
        provider = entry.provider
        assert provider.default in {"", *entry.listed()}
        assert provider.family in get_args(Family)
        assert provider.key_env or provider.auth != "key"
        assert provider.as_of or not provider.models or provider.id == "local"
