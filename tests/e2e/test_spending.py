"""What is spent, what stops it, and the kill switch, through the running gateway."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Fail, ModelServer, Say, Seen, Silence, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import sleeping, until
from tests.e2e.resident import Resident, StrictModel, resident, strict_model, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

ANN = 1001
PRICED = {"input": 2.0, "output": 10.0, "cacheRead": 0.5, "cacheWrite": 2.5}


class Looping(StrictModel):
    """Calls the same tool with the same arguments, whatever comes back."""

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        if seen.method == "POST":
            self.replies.insert(0, Use("read", {"path": "AGENTS.md"}))
        return await super()._answer(seen, writer)


def provider(url: str, model: str, **more: Any) -> dict[str, Any]:
    row = {"id": model, "name": model, **more}
    return {"api": "openai-completions", "baseUrl": f"{url}/v1", "apiKey": "sk-test-0123456789", "models": [row]}


async def test_a_call_repeated_for_ever_ends_the_run_with_one_message(tmp_path: Path) -> None:
    model = Looping()
    model.refused = []
    async with model, resident(tmp_path, model.url) as program, program.client() as client:
        ended = await client.say("go on")
        assert "repeated the same read call without getting further" in json.dumps(ended)
        assert len(model.requests) == 6
        ends = [e for e in client.events if e["event"] == "chat" and e["payload"]["state"] in ("final", "error")]
        assert len(ends) == 1
        assert not model.refused


@pytest.mark.req("MODEL-20")
async def test_what_a_fallback_serves_is_billed_at_its_price(tmp_path: Path) -> None:
    async with ModelServer() as dear, ModelServer() as cheap:
        providers = {
            "dear": provider(dear.url, "a", cost={**PRICED, "input": 1_000.0, "output": 1_000.0}),
            "cheap": provider(cheap.url, "b", cost=PRICED),
        }
        model = {"primary": "dear/a", "fallbacks": ["cheap/b"]}
        more = {"models": {"providers": providers}, "agents": {"defaults": {"model": model}}}
        async with resident(tmp_path, dear.url, more) as program, program.client() as client:
            dear.then(Fail(401, "no such key"))
            cheap.then(Say("served by the second"))
            assert "served by the second" in words(await client.say("hello"))
            found = await client.call("usage.report", {"by": "model"})
            rows = {row["name"]: row for row in found["rows"]}
            assert set(rows) == {"cheap/b"}
            row = rows["cheap/b"]
            assert row["totalCost"] == pytest.approx((row["input"] * 2 + row["output"] * 10) / 1e6)
            assert row["totalCost"] > 0
            code, out, _ = await program.run("usage", "--by", "model", "--days", "7")
            assert code == 0
            assert "cheap/b" in out
            assert (await client.call("usage.cost", {"days": 7}))["totals"]["totalTokens"] == row["totalTokens"]


@asynccontextmanager
async def chatting(root: Path, **more: Any) -> AsyncIterator[tuple[Resident, TelegramServer, StrictModel]]:
    async with strict_model() as model, TelegramServer() as telegram:
        channel = {
            "enabled": True, "botToken": telegram.token, "apiRoot": telegram.url, "dmPolicy": "allowlist",
            "allowFrom": [str(ANN)],
        }  # fmt: skip
        settings = {"channels": {"telegram": channel}, "commands": {"ownerAllowFrom": [f"telegram:{ANN}"]}, **more}
        async with resident(root, model.url, settings) as program:
            yield program, telegram, model


async def shown(telegram: TelegramServer, words: str) -> None:
    await until(lambda: any(words in text for text in telegram.shown(ANN)), 20)


def _both_sleep(seconds: str) -> bool:
    return len(sleeping(seconds)) >= 2


async def test_a_cap_stops_in_its_chat_with_a_line_that_says_all_and_the_owner_goes_on(tmp_path: Path) -> None:
    async with chatting(tmp_path, budget={"day": {"maxTokens": 1_000}}) as (program, telegram, model):
        for spent, told in ((510, "51 % of the budget for today is used: 510 of 1,000 tokens"), (300, "81 % of")):
            model.then(Say(f"used {spent}", usage=(spent - 10, 10)))
            telegram.say(ANN, "go on")
            await shown(telegram, f"used {spent}")
            telegram.say(ANN, "say:2")
            model.then(Say("small", usage=(0, 0)))
            await shown(telegram, told)
        model.then(Say("the last", usage=(190, 10)))
        telegram.say(ANN, "go on")
        await until(lambda: "the last" in telegram.shown(ANN), 20)
        asked = len(model.requests)
        telegram.say(ANN, "and on")
        await until(lambda: any("Stopped: the budget for today is" in text for text in telegram.shown(ANN)), 20)
        line = next(text for text in telegram.shown(ANN) if "Stopped: the budget for today" in text)
        assert "1,010 of 1,000 tokens" in line
        assert "garra config set budget.day.maxTokens" in line
        assert "It is free again when" in line
        assert sum("Stopped: the budget for today" in text for text in telegram.shown(ANN)) == 1
        assert len(model.requests) == asked
        telegram.say(ANN, "/usage")
        await until(lambda: any("Today: 5 calls, 1,010 tokens" in text for text in telegram.shown(ANN)))
        code, _, err = await program.run("config", "set", "budget.day.maxTokens", "1000000")
        assert code == 0, err
        await asyncio.sleep(1.5)
        telegram.say(ANN, "once more")
        await until(lambda: len(model.requests) > asked)


@pytest.mark.needs("bwrap")
async def test_ten_runs_and_their_commands_are_gone_within_two_seconds(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as program, program.client() as client:
        for number in range(8):
            model.then(Silence())
            await client.send(f"wait {number}", f"agent:main:w{number}")
        await until(lambda: len(model.requests) == 8)
        for number, seconds in enumerate(("31415", "31416")):
            model.then(Use("exec", {"command": f"sleep {seconds} & sleep {seconds}"}))
            await client.send("run", f"agent:main:x{number}")
            await until(partial(_both_sleep, seconds))
        began = time.monotonic()
        found = await client.call("work.stop", {"pause": True})
        assert time.monotonic() - began < 2.0
        assert (found["runs"], found["left"], found["paused"]) == (10, 0, True)
        assert found["commands"] == 2
        assert not sleeping("31415")
        assert not sleeping("31416")
        asked = len(model.requests)
        with pytest.raises(RuntimeError, match="Work is paused"):
            await client.send("hello")
        assert len(model.requests) == asked
        assert await program.stop() == 0
        await program.start()
        async with program.client() as again:
            assert (await again.call("work.state"))["paused"] is True
            with pytest.raises(RuntimeError, match="Work is paused"):
                await again.send("hello", key="k1")
            code, out, _ = await program.run("stop", "--all")
            assert (code, out.startswith("Nothing was at work. Work is paused")) == (0, True)
            code, out, _ = await program.run("resume")
            assert (code, out) == (0, "Work goes on.\n")
            assert words(await again.say("hello"))


async def test_a_pause_holds_without_a_gateway_too_and_is_shown_and_ended_there(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as program:
        assert (await program.run("stop", "--all", "--pause"))[0] == 0
        assert "\nWork      paused: nothing begins until `garra resume`\n" in (await program.run("status"))[1]
        assert await program.stop() == 0
        code, out, err = await program.run("agent", "--local", "-m", "hello")
        assert (code, out) == (1, "")
        assert "Work is paused" in err
        assert not model.requests
        assert (await program.run("resume"))[:2] == (0, "Work goes on.\n")
        assert (await program.run("resume"))[:2] == (0, "Work was not paused.\n")
        assert (await program.run("agent", "--local", "-m", "hello"))[0] == 0


async def test_messages_wait_for_the_end_of_a_pause_and_their_chat_is_told_once(tmp_path: Path) -> None:
    async with chatting(tmp_path) as (program, telegram, model):
        model.then(Silence())
        telegram.say(ANN, "for ever")
        await until(lambda: model.asked("for ever"))
        telegram.say(ANN, "/stop all pause")
        await shown(telegram, "Stopped: 1 run. Work is paused")
        for text in ("first", "second"):
            telegram.say(ANN, text)
        await until(lambda: any("Your message is kept" in text for text in telegram.shown(ANN)))
        await program.stop()
        await program.start()
        await asyncio.sleep(1.0)
        assert len(model.requests) == 1
        telegram.say(ANN, "/resume")
        await until(lambda: any("Work goes on" in text for text in telegram.shown(ANN)), 20)
        await until(lambda: model.asked("first") and model.asked("second"), 20)
        assert sum("Your message is kept" in text for text in telegram.shown(ANN)) == 1
        assert not model.refused


async def test_without_a_gateway_it_says_so(tmp_path: Path) -> None:
    program = Resident(tmp_path, "http://127.0.0.1:9")
    code, _, err = await program.run("stop", "--all")
    assert code != 0
    assert "No gateway runs here" in err
    code, out, _ = await program.run("usage")
    assert code == 0
    assert out.startswith("No model was called from ")


async def test_only_an_owner_stops_everything(tmp_path: Path) -> None:
    async with chatting(tmp_path, commands={"ownerAllowFrom": ["telegram:9"]}) as (_, telegram, _model):
        telegram.say(ANN, "/stop all")
        line = "Only an owner may stop everything; /stop stops this conversation."
        await shown(telegram, line)
        assert telegram.shown(ANN) == [line]
