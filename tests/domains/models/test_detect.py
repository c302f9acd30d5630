"""The first run: what is found, in which order, and what is said."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import Unavailable
from garra.core.profiles import Profile
from garra.core.secret import Secret
from garra.domains.models.detect import Scout, measure
from garra.domains.models.logins import Logins
from garra.domains.models.registry import Models
from garra.domains.models.servers import served
from garra.domains.models.weights import LocalWeights, Sheet
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.sdk.ports import DIRECT, Via
from tests.domains.models.desk import KNOWN, Desk, desk


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with desk() as ready:
        yield ready


async def no_fetch(sheet: Sheet, target: Path) -> None:
    raise Unavailable("offline")


@dataclass
class Pages:
    """An HTTP door behind which stand these JSON pages, and nothing else."""

    pages: Mapping[str, Any] = field(default_factory=dict)

    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | tuple[bytes, ...] | None = None,
        timeout: float | None = 60.0,
        connect: float = 10.0,
        via: Via = DIRECT,
    ) -> Any:
        return _Page(self.pages.get(url))

    def client(self, via: Via = DIRECT) -> Any:
        raise AssertionError("nobody asks these pages for a client")

    async def warm(self) -> None:
        return None


@dataclass
class _Page:
    content: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    async def __aenter__(self) -> _Page:
        if self.content is None:
            raise Unavailable("no connection", details={"kind": "connect"})
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def read(self, limit: int = 1 << 20) -> bytes:
        return json.dumps(self.content).encode()


def scout(folder: Path, env: Mapping[str, str] | None = None, pages: Mapping[str, Any] | None = None) -> Scout:
    return Scout(Pages(pages or {}), LocalWeights(folder, no_fetch), env or {})


OLLAMA = {
    "http://127.0.0.1:11434/v1/models": {"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:4b"}]},
    "http://127.0.0.1:11434/api/ps": {"models": [{"model": "qwen3:4b", "context_length": 8_192}]},
}
LMSTUDIO = {
    "http://127.0.0.1:1234/v1/models": {"data": [{"id": "gemma"}]},
    "http://127.0.0.1:1234/api/v0/models": {"data": [{"id": "gemma", "loaded_context_length": 4_096}]},
}


async def test_what_is_configured_comes_first(at: Desk, tmp_path: Path) -> None:
    at.configure({"agents": {"defaults": {"model": "groq/x"}}})
    pick = await scout(tmp_path, {"OPENAI_API_KEY": "k"}).pick(at.models)
    assert (pick.ref, pick.how) == ("groq/x", "configured")
    assert at.models.picked == ""


async def test_a_key_in_the_environment_then_a_server(at: Desk, tmp_path: Path) -> None:
    env = {"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}
    pick = await scout(tmp_path, env, OLLAMA).pick(at.models)
    assert (pick.ref, pick.how) == ("openai/gpt-6-sol", "key")
    assert "OPENAI_API_KEY is set" in pick.words
    assert at.models.resolve().ref == "openai/gpt-6-sol"


async def test_the_owners_own_provider_beats_a_key(at: Desk, tmp_path: Path) -> None:
    at.configure(at.provider("mine", models=[{"id": "m", "name": "M"}]))
    pick = await scout(tmp_path, {"OPENAI_API_KEY": "k"}).pick(at.models)
    assert pick.ref == "mine/m"


async def test_a_server_on_its_usual_port_and_its_window(at: Desk, tmp_path: Path) -> None:
    pick = await scout(tmp_path, {}, {**LMSTUDIO, **OLLAMA}).pick(at.models)
    assert (pick.ref, pick.how) == ("ollama/qwen3:4b", "server")
    assert "Ollama answers at http://127.0.0.1:11434/v1" in pick.words
    model = at.models.resolve()
    assert (model.context_window, model.prompt) == (8_192, "lite")


async def test_then_a_model_that_was_installed_here(at: Desk, tmp_path: Path) -> None:
    with (tmp_path / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf").open("wb") as file:
        file.truncate(491_400_064)
    pick = await scout(tmp_path).pick(at.models)
    assert (pick.ref, pick.how) == ("local/qwen2.5-coder-0.5b", "installed")


async def test_then_the_small_one_which_can_talk_not_work(at: Desk, tmp_path: Path) -> None:
    pick = await scout(tmp_path).pick(at.models)
    assert (pick.ref, pick.how) == ("local/smollm2", "small")
    for words in ("can talk, not work", "garra models set", "garra models install-local", "ANTHROPIC_API_KEY"):
        assert words in pick.words
    assert at.models.resolve().api == "local"


async def test_a_login_that_is_kept_is_as_good_as_a_key(at: Desk, tmp_path: Path) -> None:
    db = Database(tmp_path / "state.db")
    logins = Logins(db, SystemClock())
    await logins.put(Profile("groq:manual", "groq", "api_key", Secret("k")))
    models = Models(lambda: at.config, replace(at.models._ports, logins=logins), KNOWN)
    pick = await scout(tmp_path).pick(models)
    assert pick.ref.startswith("groq/")
    assert pick.words.endswith("a login for Groq is kept.")
    await db.close()


async def test_then_clear_words(at: Desk, tmp_path: Path) -> None:
    without = replace_known(at, tuple(provider for provider in KNOWN if provider.id != "local"))
    pick = await scout(tmp_path).pick(without)
    assert (pick.ref, pick.how) == ("", "none")
    assert pick.words.startswith("No model was found.")


def replace_known(at: Desk, known: tuple[Any, ...]) -> Models:
    return Models(lambda: at.config, at.models._ports, known)


async def test_windows_of_other_servers() -> None:
    by_id = {provider.id: provider for provider in KNOWN}
    pages = {
        **LMSTUDIO,
        "http://127.0.0.1:8080/v1/models": {"data": [{"id": "m", "meta": {"n_ctx_train": 131_072}}]},
        "http://127.0.0.1:8080/props": {"default_generation_settings": {"n_ctx": 4_096}},
        "http://127.0.0.1:8000/v1/models": {"data": [{"id": "v", "max_model_len": 32_768}, {"no": 1}, 7]},
    }
    windows = {
        name: [item.window for item in await served(Pages(pages), by_id[name])]
        for name in ("lm-studio", "llama.cpp", "vllm", "ollama")
    }
    assert windows == {"lm-studio": [4_096], "llama.cpp": [4_096], "vllm": [32_768], "ollama": []}
    del pages["http://127.0.0.1:8080/props"]
    assert [item.window for item in await served(Pages(pages), by_id["llama.cpp"])] == [131_072]


async def test_a_configured_server_is_measured_where_the_owner_said_nothing(at: Desk) -> None:
    at.configure({"models": {"providers": {"mine": {"baseUrl": "http://mine/v1", "models": []}}}})
    pages = Pages({"http://mine/v1/models": {"data": [{"id": "m", "max_model_len": 9_000}]}})
    await measure(at.models, pages, "mine/m")
    await measure(at.models, pages, "nosuch/m")
    assert at.models.resolve("mine/m").context_window == 9_000


async def test_a_stranger_on_the_port_is_no_model_server() -> None:
    ollama = next(provider for provider in KNOWN if provider.id == "ollama")
    assert await served(Pages({"http://127.0.0.1:11434/v1/models": ["?"]}), ollama) == ()
    assert await served(Pages({"http://127.0.0.1:11434/v1/models": {"x": 1}}), replace(ollama, id="o")) == ()
