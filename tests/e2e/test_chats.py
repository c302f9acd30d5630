"""The running program with a Telegram bot: who is answered, what outlives a kill, and what is told of a message."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Fail, Say
from garra.testing.telegram import Fault, TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import Resident, StrictModel, resident, strict_model

pytestmark = pytest.mark.e2e

FRIEND, STRANGER = 1001, 2002


def chats(server: TelegramServer, **more: Any) -> dict[str, Any]:
    bot = {"botToken": server.token, "apiRoot": server.url, "allowFrom": [FRIEND], **more}
    return {"channels": {"telegram": bot}, "session": {"dmScope": "per-channel-peer"}}


@asynccontextmanager
async def running(root: Path, **more: Any) -> AsyncIterator[tuple[Resident, StrictModel, TelegramServer]]:
    async with (
        strict_model() as model,
        TelegramServer() as telegram,
        resident(root, model.url, chats(telegram, **more)) as program,
    ):
        yield program, model, telegram


async def listens(program: Resident) -> bool:
    """Whether the bot's link runs."""
    _, out, _ = await program.run("channels", "status", "--json")
    running: bool = json.loads(out)["channelAccounts"]["telegram"][0]["running"]
    return running


@pytest.mark.req("MSG-01", "ONE-02")
async def test_a_message_is_fetched_answered_and_told_of(tmp_path: Path) -> None:
    async with running(tmp_path) as (program, model, telegram):
        model.then(Say("It is **Paris**."))
        telegram.say(FRIEND, "capital of France?")
        await until(lambda: "It is <b>Paris</b>." in telegram.shown(FRIEND))
        assert len(model.asked("capital of France?")) == 1

        code, out, _ = await program.run("messages", "list", "--in", "--json")
        assert code == 0
        row = json.loads(out)["messages"][0]
        assert (row["state"], row["channel"], row["chat"]) == ("done", "telegram", str(FRIEND))
        code, story, _ = await program.run("messages", "show", row["id"])
        assert code == 0
        for station in ("capital of France?", "It is", "received", "admitted", "routed", "sent", "confirmed"):
            assert station in story, story


async def test_the_story_of_one_that_failed_says_why(tmp_path: Path) -> None:
    async with running(tmp_path) as (program, model, telegram):
        model.then(Fail(401, "no such key"))
        telegram.say(FRIEND, "hello")
        await until(lambda: telegram.shown(FRIEND))
        assert "check the key" in telegram.shown(FRIEND)[0]
        telegram.fail("sendMessage", Fault(403, "Forbidden: bot was blocked by the user", times=9))
        telegram.say(FRIEND, "again")

        _, out, _ = await program.run("messages", "list", "--out", "--state", "dead", "--json")
        for _ in range(60):
            if json.loads(out)["messages"]:
                break
            _, out, _ = await program.run("messages", "list", "--out", "--state", "dead", "--json")
        row = json.loads(out)["messages"][0]
        code, story, _ = await program.run("messages", "show", row["id"])
        assert code == 0
        assert "blocked" in story
        assert "retry" in story


@pytest.mark.req("SEC-01", "ONE-04")
async def test_a_stranger_reaches_no_model_until_the_owner_lets_him_in_and_a_restart_keeps_it(tmp_path: Path) -> None:
    async with running(tmp_path) as (program, model, telegram):
        telegram.say(STRANGER, "let me in")
        await until(lambda: telegram.shown(STRANGER))
        found = re.search(r"Pairing code: <?c?o?d?e?>?([A-Z0-9]{8})", telegram.shown(STRANGER)[0])
        assert found, telegram.shown(STRANGER)
        assert not model.asked("let me in")

        code, out, err = await program.run("pairing", "approve", "telegram", found[1])
        assert code == 0, err
        program.kill()
        await program.gone()
        await program.start()
        telegram.say(STRANGER, "and now?")
        await until(lambda: model.asked("and now?"))
        assert not model.asked("let me in"), out


@pytest.mark.req("MSG-02")
async def test_what_came_in_before_a_kill_is_answered_once_after_it(tmp_path: Path) -> None:
    async with running(tmp_path) as (program, model, telegram):
        telegram.say(FRIEND, "first")
        await until(lambda: len(telegram.shown(FRIEND)) == 1)
        telegram.fail("sendMessage", Fault(500, "Internal Server Error", times=1_000))
        model.then(Say("the second answer"))
        telegram.say(FRIEND, "second")
        await until(lambda: model.asked("second"))
        program.kill()
        await program.gone()
        telegram.mend()
        await program.start()
        await until(lambda: "the second answer" in telegram.shown(FRIEND) or len(telegram.shown(FRIEND)) > 1, 30)
        assert len(telegram.shown(FRIEND)) == 2
        assert not model.refused


async def test_a_bot_that_is_switched_off_while_the_program_runs_is_heard_no_more(tmp_path: Path) -> None:
    async with running(tmp_path) as (program, model, telegram):
        telegram.say(FRIEND, "one")
        await until(lambda: telegram.shown(FRIEND))
        code, _, err = await program.run("config", "set", "channels.telegram.enabled", "false")
        assert code == 0, err
        async with asyncio.timeout(20):
            while await listens(program):
                pass
        polls = len(telegram.asked("getUpdates"))
        telegram.say(FRIEND, "two")
        assert not await listens(program)
        assert (len(telegram.asked("getUpdates")), model.asked("two")) == (polls, [])
        code, _, _ = await program.run("config", "set", "channels.telegram.enabled", "true")
        assert code == 0
        await until(lambda: model.asked("two"), 20)


async def test_a_file_of_words_reaches_the_model(tmp_path: Path) -> None:
    async with running(tmp_path) as (program, model, telegram):
        telegram.files["f1"] = b"the meeting is at noon"
        note = {"file_id": "f1", "file_unique_id": "u1", "file_name": "note.txt", "mime_type": "text/plain"}
        message = {**telegram.message(FRIEND, ""), "document": note, "caption": "when is it?"}
        message.pop("text")
        telegram.push({"message": message})
        await until(lambda: model.asked("when is it?"))
        assert model.asked("the meeting is at noon"), program.log()


@pytest.mark.req("MSG-11")
async def test_the_model_is_told_who_it_is_what_it_may_do_and_what_was_said_before(tmp_path: Path) -> None:
    place = tmp_path / "state" / "workspace"
    for name, words in {
        "AGENTS.md": "Rules: be brief.",
        "SOUL.md": "Your soul is calm.",
        "USER.md": "Your person is Ann.",
        "MEMORY.md": "The cat is called Tom.",
        "skills/tides/SKILL.md": "---\nname: tides\ndescription: Reads tide tables.\n---\nLook at the sea.",
    }.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(words)
    async with running(tmp_path) as (program, model, telegram):
        telegram.say(FRIEND, "first question")
        await until(lambda: len(telegram.shown(FRIEND)) == 1)
        telegram.say(FRIEND, "second question")
        await until(lambda: len(telegram.shown(FRIEND)) == 2)
        first, last = model.requests[0].body, model.requests[-1].body
        system, *said = last["messages"]
        assert system["role"] == "system"
        places = [system["content"].index(words) for words in ("be brief", "is calm", "is Ann", "called Tom")]
        assert places == sorted(places)
        assert "Reads tide tables." in system["content"]
        assert "Look at the sea." not in system["content"]
        assert [message["role"] for message in said] == ["user", "assistant", "user"]
        assert "first question" in str(said[0])
        assert {"read", "write", "exec"} <= {tool["function"]["name"] for tool in last["tools"]}
        assert (system, last["tools"]) == (first["messages"][0], first["tools"]), program.log()


@pytest.mark.req("ONE-01")
async def test_one_process_owns_the_chats_and_asking_twice_sends_once(tmp_path: Path) -> None:
    async with running(tmp_path) as (program, _, telegram):
        telegram.say(FRIEND, "hello")
        await until(lambda: telegram.shown(FRIEND))
        code, _, err = await program.run("gateway", "run", "--port", "0")
        assert code != 0
        assert "gateway" in err
        wish = {"to": str(FRIEND), "channel": "telegram", "message": "the tide is in", "idempotencyKey": "once"}
        async with program.client() as one, program.client() as other:
            answers = await asyncio.gather(one.call("send", wish), other.call("send", wish))
        assert answers[0]["messageId"] == answers[1]["messageId"]
        async with program.client() as later:
            again = await later.call("send", wish)
            await later.call("health")
        assert again["messageId"] == answers[0]["messageId"]
        assert telegram.shown(FRIEND).count("the tide is in") == 1
        assert not [event for event in later.events if event["event"] in ("chat", "agent")]
