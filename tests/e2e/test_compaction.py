"""Conversations that grow too large, through the running gateway and a model that refuses what does not fit."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Fail, Say, Seen, Silence, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import Client, Resident, StrictModel, resident, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

LIMIT = 20_000
ANN = 1001
SUMMARY = "You sum up a conversation"
FLUSH = "Housekeeping, not from the person"
KEY = "agent:main:main"


class Narrow(StrictModel):
    """Refuses requests of more than `limit` tokens (bytes / 4), as providers do; sums up where it is asked to."""

    limit = LIMIT
    summary: Any = None
    flush: list[Any]

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        if seen.method == "POST":
            tokens = len(seen.raw) // 4
            if self.limit and tokens > self.limit:
                said = (
                    f"This model's maximum context length is {self.limit} tokens. Your messages resulted in {tokens}."
                )
                self.replies.insert(0, Fail(400, said))
            elif SUMMARY.encode() in seen.raw:
                self.replies.insert(0, self.summary or Say("## Goal\nThe person plans a boat named Petrel."))
            elif FLUSH.encode() in seen.raw:
                self.replies.insert(0, self.flush.pop(0) if self.flush else Say("NO_REPLY"))
            elif self.replies and isinstance(self.replies[0], Say | Use):
                self.replies[0] = replace(self.replies[0], usage=(tokens, 5))
            elif not self.replies:
                last = [message for message in seen.body["messages"] if message["role"] == "user"][-1]
                self.replies.insert(0, Say(f"pong: {spoken(last)[-40:]}", usage=(tokens, 5)))
        return await super()._answer(seen, writer)

    def sums(self) -> list[Seen]:
        return [seen for seen in self.requests if SUMMARY.encode() in seen.raw]


def spoken(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def configured(window: int = LIMIT, **compaction: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {"model": {"primary": "fake/fake"}, "skipBootstrap": True}
    if window:
        defaults["contextTokens"] = window
    return {"agents": {"defaults": {**defaults, "compaction": compaction}}}


@asynccontextmanager
async def narrow(root: Path, window: int = LIMIT, **more: Any) -> AsyncIterator[tuple[Resident, Narrow, Client]]:
    model = Narrow()
    model.refused, model.flush = [], []
    async with model, resident(root, model.url, {**configured(window), **more}) as program, program.client() as client:
        yield program, model, client


def entries(program: Resident) -> list[dict[str, Any]]:
    files = sorted(
        (program.state / "agents" / "main" / "sessions").glob("*.jsonl"), key=lambda path: path.stat().st_mtime
    )
    return [json.loads(line) for line in files[-1].read_text().splitlines()]


async def fill(client: Client, turns: int, size: int = 4_000) -> None:
    for at in range(turns):
        ended = await client.say(f"turn {at} " + "lorem " * (size // 6))
        assert ended["state"] == "final", ended


@pytest.mark.req("SESS-06", "SESS-12")
async def test_a_long_conversation_goes_on_within_a_small_window(tmp_path: Path) -> None:
    async with narrow(tmp_path) as (program, model, client):
        await client.say("My boat is called Petrel.")
        await fill(client, 22)
        assert not model.refused
        assert not [seen for seen in model.requests if len(seen.raw) // 4 > LIMIT]
        cuts = [entry for entry in entries(program) if entry["type"] == "compaction"]
        assert 1 <= len(cuts) <= 3
        assert len(model.sums()) <= 2 * len(cuts)
        assert "Petrel" in model.requests[-1].raw.decode()
        rows = (await client.call("sessions.list", {}))["sessions"]
        assert rows[0]["compactionCount"] == len(cuts)
        told = [
            e["payload"]["data"]
            for e in client.events
            if e["event"] == "agent" and e["payload"]["stream"] == "compaction"
        ]
        assert [each["phase"] for each in told[:2]] == ["start", "end"]
        assert "Compactions" in words(await client.say("/status"))


@pytest.mark.req("SESS-12", "SESS-05")
async def test_a_refusal_is_rescued_once_and_the_old_lines_stay(tmp_path: Path) -> None:
    async with narrow(tmp_path, window=0) as (program, model, client):
        model.limit = 0
        await fill(client, 12, 8_000)
        before = entries(program)
        model.limit = LIMIT
        ended = await client.say("and now?")
        assert words(ended).endswith("and now?")
        after = entries(program)
        assert after[: len(before)] == before
        assert [entry["type"] for entry in after[len(before) :]].count("compaction") == 1
        asked = len(model.requests)
        assert "pong" in words(await client.say("and then?"))
        assert len(model.requests) == asked + 1


@pytest.mark.req("SESS-12")
async def test_what_never_fits_ends_with_a_clear_word_and_not_in_a_circle(tmp_path: Path) -> None:
    async with narrow(tmp_path) as (_, model, client):
        await fill(client, 3)
        model.limit = 100
        asked = len(model.requests)
        ended = await client.say("hello?")
        assert ended["state"] == "error"
        assert "did not fit" in ended["errorMessage"]
        assert len(model.requests) - asked <= 8
        model.limit = LIMIT
        assert "pong" in words(await client.say("hello again"))


@pytest.mark.parametrize("reply", [Fail(500, "broken"), Say("<!doctype html><html>gateway error</html>"), Say("")])
async def test_where_no_summary_can_be_had_the_oldest_goes_and_the_person_is_told(tmp_path: Path, reply: Any) -> None:
    async with narrow(tmp_path) as (program, model, client):
        model.summary = reply
        await fill(client, 20)
        stored = "".join(json.dumps(entry) for entry in entries(program))
        assert all(f"turn {at} lorem" in stored for at in range(20))
        cuts = [entry for entry in entries(program) if entry["type"] == "compaction"]
        assert cuts
        assert "left out here without a summary" in cuts[0]["summary"]
        notices = [e for e in client.events if "could not be summed up" in json.dumps(e)]
        assert notices
        assert not model.refused


async def test_many_large_results_fit_with_few_summaries(tmp_path: Path) -> None:
    async with narrow(tmp_path) as (program, model, client):
        workspace = program.state / "workspace"
        (workspace / "big.txt").write_text("0123456789abcde\n" * 500)
        for at in range(30):
            model.then(Use("read", {"path": "big.txt", "offset": at + 1}))
        model.then(Say("all read"))
        ended = await client.say("read it thirty times")
        assert "all read" in words(ended), ended
        assert len(model.sums()) <= 2
        assert not [seen for seen in model.requests if len(seen.raw) // 4 > LIMIT]
        assert not model.refused


@pytest.mark.req("SESS-17")
async def test_before_a_cut_the_agent_saves_to_its_diary_and_nowhere_else(tmp_path: Path) -> None:
    async with narrow(tmp_path) as (program, model, client):
        workspace = program.state / "workspace"
        (workspace / "MEMORY.md").write_text("I am as I was.\n")
        await fill(client, 8)
        flushed = [seen for seen in model.requests if FLUSH.encode() in seen.raw]
        if not flushed:
            await fill(client, 4)
            flushed = [seen for seen in model.requests if FLUSH.encode() in seen.raw]
        assert flushed
        path = flushed[0].raw.decode().split("with the path `")[1].split("`")[0]
        model.flush = [
            Use("write", {"path": "MEMORY.md", "content": "changed"}),
            Use("write", {"path": path, "content": "- the boat is called Petrel"}),
            Say("NO_REPLY"),
        ]
        diary = workspace / path
        diary.parent.mkdir(exist_ok=True)
        diary.write_text("- older\n")
        for _ in range(16):
            if not model.flush:
                break
            await fill(client, 1)
        assert diary.read_text() == "- older\n- the boat is called Petrel\n"
        assert (workspace / "MEMORY.md").read_text() == "I am as I was.\n"
        assert not [e for e in client.events if e["event"] == "chat" and "Housekeeping" in json.dumps(e)]
        assert not [entry for entry in entries(program) if "Housekeeping" in json.dumps(entry)]


@pytest.mark.req("SESS-10")
async def test_a_person_sums_up_and_secrets_stay_out(tmp_path: Path) -> None:
    async with narrow(tmp_path) as (program, model, client):
        await fill(client, 4)
        ended = words(await client.say("/compact the boat above all"))
        assert "summed up" in ended
        asked = model.sums()[0].raw.decode()
        assert "the boat above all" in asked
        found = await client.call("sessions.compact", {"key": "main", "maxLines": 2})
        assert found["compacted"] is True
        assert found["kept"] <= 2
        assert words(await client.say("hello")).endswith("hello")
        assert not model.refused
        code, out, _ = await program.run("sessions", "compact", "main", "--json")
        assert code == 0
        assert json.loads(out)["compacted"] is True
        code, _, err = await program.run("sessions", "compact", "agent:main:nobody")
        assert code == 1
        assert "not found" in err


@pytest.mark.req("SESS-11")
async def test_a_reset_is_told_and_undone(tmp_path: Path) -> None:
    async with narrow(tmp_path) as (_, model, client):
        await client.say("My boat is called Petrel.")
        first = (await client.call("sessions.describe", {"key": "main"}))["session"]["sessionId"]
        assert "/undo" in words(await client.say("/new"))
        await client.say("hello")
        assert "Petrel" not in model.requests[-1].raw.decode()
        assert "goes on" in words(await client.say("/undo"))
        await client.say("and now?")
        assert "Petrel" in model.requests[-1].raw.decode()
        assert (await client.call("sessions.describe", {"key": "main"}))["session"]["sessionId"] == first
        assert "goes on" in words(await client.say("/reset undo"))
        await client.say("there?")
        assert "Petrel" not in model.requests[-1].raw.decode()


@pytest.mark.req("SESS-11")
async def test_after_a_pause_a_conversation_begins_anew_and_the_person_is_told(tmp_path: Path) -> None:
    more: dict[str, Any] = {"session": {"reset": {"mode": "idle", "idleMinutes": 0.02}}}
    async with narrow(tmp_path, **more) as (program, model, client):
        await client.say("My boat is called Petrel.")
        await client.say("It is blue.")
        old = entries(program)
        model.flush = [
            Use("write", {"path": f"memory/{time.strftime('%Y-%m-%d', time.gmtime())}.md", "content": "- Petrel"})
        ]
        first = (await client.call("sessions.describe", {"key": "main"}))["session"]["sessionId"]
        await asyncio.sleep(1.5)
        await client.say("What is it called?")
        second = (await client.call("sessions.describe", {"key": "main"}))["session"]["sessionId"]
        assert second != first
        raw = model.requests[-1].raw.decode()
        assert "They: My boat is called Petrel." in raw
        assert [e for e in client.events if "/undo brings it back" in json.dumps(e)]
        folder = program.state / "workspace" / "memory"
        await until(lambda: any("- Petrel" in path.read_text() for path in folder.glob("*.md")))
        kept = (program.state / "agents" / "main" / "sessions" / f"{first}.jsonl").read_text()
        assert [json.loads(line) for line in kept.splitlines()] == old


async def test_what_comes_while_it_is_summed_up_waits_and_is_answered(tmp_path: Path) -> None:
    async with narrow(tmp_path) as (_, model, client):
        await fill(client, 4)
        model.summary = Say("## Goal\nA boat named Petrel.", delay_s=1.0)
        asked = await client.send("/compact")
        await until(lambda: bool(model.sums()))
        other = await client.send("are you there?")
        assert "summed up" in words(await client.until(asked))
        assert "are you there?" in words(await client.until(other))
        assert "Petrel" in model.requests[-1].raw.decode()
        assert not model.refused


async def test_a_stop_while_it_is_summed_up_leaves_it_as_it_was(tmp_path: Path) -> None:
    async with narrow(tmp_path) as (program, model, client):
        await fill(client, 4)
        before = entries(program)
        model.summary = Silence()
        asked = await client.send("/compact")
        await until(lambda: bool(model.sums()))
        await client.call("chat.abort", {"sessionKey": KEY})
        assert "as it was" in words(await client.until(asked)) or "topped" in words(await client.until(asked))
        assert entries(program) == before
        model.summary = None
        assert words(await client.say("hello")).endswith("hello")


@pytest.mark.req("SESS-05")
async def test_a_kill_while_it_is_summed_up_leaves_it_as_it_was(tmp_path: Path) -> None:
    async with narrow(tmp_path) as (program, model, client):
        await client.say("My boat is called Petrel.")
        await fill(client, 4)
        before = entries(program)
        model.summary = Silence()
        await client.send("/compact")
        await until(lambda: bool(model.sums()))
        program.kill()
        await program.gone()
        assert entries(program) == before
        await program.start()
        model.summary = None
        async with program.client() as again:
            assert words(await again.say("hello")).endswith("hello")
            assert "Petrel" in model.requests[-1].raw.decode()
        assert entries(program)[: len(before)] == before


async def test_in_a_chat_it_is_summed_up_undone_and_told(tmp_path: Path) -> None:
    model = Narrow()
    model.refused, model.flush = [], []
    async with model, TelegramServer() as telegram:
        bot = {"botToken": telegram.token, "apiRoot": telegram.url, "allowFrom": [ANN]}
        more: dict[str, Any] = {
            **configured(),
            "channels": {"telegram": bot},
            "messages": {"queue": {"debounceMs": 0}, "inbound": {"debounceMs": 0}},
            "session": {"reset": {"mode": "idle", "idleMinutes": 0.05}},
        }
        async with resident(tmp_path, model.url, more):

            async def say(text: str, answer: str) -> None:
                known = len(telegram.shown(ANN))
                telegram.say(ANN, text)
                await until(lambda: any(answer in each for each in telegram.shown(ANN)[known:]), 20)

            for number in range(3):
                await say(f"number {number} of my boat Petrel {'w' * 2_000}", "pong")
            await say("/compact the boat", "was summed up")
            assert "the boat" in model.sums()[0].raw.decode()
            await say("/status", "Compactions: 1")
            await asyncio.sleep(3.2)
            await say("and now?", "/undo brings it back")
            await until(lambda: any("and now?" in each for each in telegram.shown(ANN)))
            await say("/undo", "goes on")
