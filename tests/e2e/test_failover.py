"""A model that fails, through the running gateway: who is asked next, what is read, and nothing is done twice."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Fail, Reply, Say, Seen, Silence, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import Resident, StrictModel, resident, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]
ANN = 41


@dataclass
class Models(StrictModel):
    """Answers by the model that is asked: what was put in for it, then `pong`."""

    refused: list[str] = field(default_factory=list)
    lined: defaultdict[str, deque[Reply]] = field(default_factory=lambda: defaultdict(deque))
    asked_of: list[tuple[str, str | None]] = field(default_factory=list)

    def put(self, model: str, *replies: Reply) -> None:
        self.lined[model].extend(replies)

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        if seen.method == "POST":
            name = str(seen.body["model"])
            self.asked_of.append((name, seen.key))
            self.replies[:] = [self.lined[name].popleft()] if self.lined[name] else []
        return await super()._answer(seen, writer)

    def asked_models(self) -> list[str]:
        """Who was asked since the last look."""
        names, self.asked_of[:] = [name for name, _ in self.asked_of], []
        return names


def providers(url: str, **more: Any) -> dict[str, Any]:
    """Provider `one` with models a and b, provider `two` with model c."""
    row = {"api": "openai-completions", "baseUrl": f"{url}/v1", "apiKey": "sk-one-key", **more}
    models = {name: {"id": name, "name": name} for name in "abc"}
    return {
        "one": {**row, "models": [models["a"], models["b"]]},
        "two": {**row, "apiKey": "sk-two-key", "models": [models["c"]]},
    }


@asynccontextmanager
async def gateway(root: Path, *fallbacks: str, **more: Any) -> AsyncIterator[tuple[Resident, Models]]:
    model = Models()
    async with model:
        settings = {
            "models": {"providers": providers(model.url, **more.pop("provider", {}))},
            "agents": {"defaults": {"model": {"primary": "one/a", "fallbacks": list(fallbacks)}}},
            **more,
        }
        async with resident(root, model.url, settings) as program:
            yield program, model
        assert not model.refused


async def trace(program: Resident, text: str = "hello") -> dict[str, Any]:
    """One turn by the command: its execution trace, and its words under `said`."""
    _, out, err = await program.run("agent", "-m", text, "--json")
    body = json.loads(out)
    if "error" in body:
        return {"said": [body["error"]["message"]], "attempts": body["error"]["details"]["attempts"], "err": err}
    found: dict[str, Any] = body.get("result", body)
    said = [each["text"] for each in found["payloads"]]
    return {**found["meta"]["executionTrace"], "said": said, "err": err}


def levels(traced: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["model"], each["level"], each["result"]) for each in traced["attempts"]]


@pytest.mark.req("MODEL-13")
async def test_the_next_model_answers_this_turn_and_the_first_is_asked_the_next(tmp_path: Path) -> None:
    async with gateway(tmp_path, "two/c") as (program, model):
        model.put("a", *[Fail(500, "boom")] * 3)
        first = await trace(program)
        assert (first["winnerProvider"], first["winnerModel"], first["fallbackUsed"]) == ("two", "c", True)
        assert first["said"][0].endswith("hello")
        assert levels(first) == [
            ("a", "first", "server_error"), ("a", "operation", "server_error"), ("a", "operation", "server_error"),
            ("c", "first", "success"),
        ]  # fmt: skip
        second = await trace(program)
        assert (second["winnerModel"], second["fallbackUsed"]) == ("a", False)
        assert model.asked_models() == ["a", "a", "a", "c", "a"]
        model.put("a", *[Fail(500, "boom")] * 3)
        code, out, err = await program.run("agent", "--message", "hello")
        assert (code, err) == (0, "garra: two/c answered instead of one/a: the provider has a fault\n")
        assert "hello" in out


@pytest.mark.req("MODEL-12", "MODEL-17")
async def test_each_level_of_recovery_is_seen_in_the_trace(tmp_path: Path) -> None:
    env = {"apiKey": "sk-one-key"}
    async with gateway(tmp_path, "one/b", provider=env) as (program, model):
        model.put("a", Fail(429, "slow", {"retry-after-ms": "100"}))
        assert levels(await trace(program)) == [("a", "first", "rate_limit"), ("a", "transport", "success")]
        model.put("a", Fail(503, "busy"))
        assert levels(await trace(program)) == [("a", "first", "overloaded"), ("a", "operation", "success")]
        for name in ("one:x", "one:y"):
            code, _, _ = await program.run(
                "models",
                "auth",
                "paste-api-key",
                "--provider",
                "one",
                "--profile-id",
                name,
                given=f"sk-{name}\n".encode(),
            )
            assert code == 0
        await program.stop()
        await program.start()
        model.put("a", Fail(429, "slow", {"retry-after": "30"}))
        model.asked_of.clear()
        turned = await trace(program)
        assert [(each["profile"], each["level"]) for each in turned["attempts"]] == [
            ("one:x", "first"), ("one:y", "profile"),
        ]  # fmt: skip
        assert [key for _, key in model.asked_of] == ["sk-one:x", "sk-one:y"]
        model.put("a", Fail(429, "slow", {"retry-after": "30"}))
        model.asked_of.clear()
        assert (await trace(program))["winnerModel"] == "b", "both keys rest for a, and b is of the same keys"
        model.put("b", *[Fail(429, "slow", {"retry-after": "30"})] * 2)
        model.put("a", Fail(429, "slow", {"retry-after": "30"}))
        ended = await trace(program)
        tried = [(each["model"], each["result"]) for each in ended["attempts"]]
        assert tried == [("b", "rate_limit"), ("b", "rate_limit"), ("a", "rate_limit")], "a was asked as a probe"
        assert re.search(r"Every model failed: one/b, one/a \(rate_limit\)\. Retry in (29|30) s", ended["said"][0])
        model.asked_of.clear()
        again = await trace(program)
        assert {each["level"] for each in again["attempts"]} == {"session"}
        assert re.search(r"again in \d+ s", again["said"][0])
        assert model.asked_models() == [], "the conversation rests until a login is free"


async def test_one_models_limit_leaves_the_other_of_the_same_key(tmp_path: Path) -> None:
    async with gateway(tmp_path, "one/b") as (program, model):
        model.put("a", Fail(429, "slow", {"retry-after": "1"}), Fail(429, "slow", {"retry-after": "3"}))
        assert (await trace(program))["winnerModel"] == "b"
        assert (await trace(program))["winnerModel"] == "b"
        assert model.asked_models() == ["a", "a", "b", "b"], "a rests as long as the server said"
        await asyncio.sleep(3)
        assert (await trace(program))["winnerModel"] == "a"
        model.put("a", Fail(404, "model not found"))
        assert (await trace(program))["winnerModel"] == "b"


async def test_a_turn_goes_on_from_its_last_step_and_does_nothing_twice(tmp_path: Path) -> None:
    async with gateway(tmp_path, "two/c") as (program, model):
        use = Use("write", {"path": "once.txt", "content": "written"}, id="call_77")
        model.put("a", use, Fail(402, "insufficient credits"))
        model.put("c", Say("c saw what a had done"))
        async with program.client() as client:
            last = await client.say("write it")
            assert words(last) == "c saw what a had done"
        kinds = [message["role"] for message in model.requests[-1].body["messages"]]
        assert kinds.count("tool") == 1, "the next model has the result"
        assert (program.state / "workspace" / "once.txt").read_text() == "written"
        assert model.asked_models() == ["a", "a", "c"]


@pytest.mark.req("MODEL-14")
async def test_what_does_not_go_to_another_model(tmp_path: Path) -> None:
    async with gateway(tmp_path, "two/c") as (program, model), program.client() as client:
        model.put("a", *[Fail(400, "maximum context length is 8 tokens")] * 4)
        assert (await client.say("too long"))["state"] == "error"
        assert "c" not in model.asked_models()
        model.lined.clear()
        model.asked_of.clear()
        model.put("a", Silence(20))
        run = await client.send("never mind")
        await until(lambda: bool(model.asked_of))
        await client.call("chat.abort", {"sessionKey": "agent:main:main", "runId": run})
        assert (await client.until(run))["state"] == "aborted"
        assert "c" not in model.asked_models()


def answered(telegram: TelegramServer, text: str) -> bool:
    return any(said.startswith("pong") and said.endswith(text) for said in telegram.shown(ANN))


async def test_a_silent_model_is_left_and_a_person_hears_once_who_answers(tmp_path: Path) -> None:
    async with TelegramServer() as telegram:
        channel = {"enabled": True, "botToken": telegram.token, "apiRoot": telegram.url, "dmPolicy": "allowlist",
                   "allowFrom": [str(ANN)]}  # fmt: skip
        more = {"channels": {"telegram": channel}, "provider": {"timeouts": {"firstTokenSeconds": 1}}}
        async with gateway(tmp_path, "two/c", **more) as (_, model):
            model.put("a", Silence(20))
            for text in ("first", "second"):
                telegram.say(ANN, text)
                await until(partial(answered, telegram, text), 20)
            await until(lambda: any("Model fallback: two/c answers" in text for text in telegram.shown(ANN)), 20)
            told = [text for text in telegram.shown(ANN) if "Model fallback" in text]
            assert told == ["↪️ Model fallback: two/c answers (selected one/a; it did not answer in time)"]
            assert model.asked_models() == ["a", "c", "c"]
