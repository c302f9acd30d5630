"""The gateway's own chat as a channel: kept, gone on with after a crash, told about, and written into."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say
from tests.e2e.resident import Client, Resident, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]
MAIN = "agent:main:main"


async def told(program: Resident, *words: str) -> Any:
    code, out, err = await program.run(*words, "--json")
    assert code == 0, out + err
    return json.loads(out)


async def until(found: Callable[[], Awaitable[Any]]) -> Any:
    """What it finds, once it finds something."""
    for _ in range(300):
        if what := await found():
            return what
        await asyncio.sleep(0.03)
    raise AssertionError("it did not come about")


async def finished(program: Resident) -> Any:
    """The one message there is, once it is finished."""

    async def look() -> Any:
        (row,) = (await told(program, "messages", "list"))["messages"]
        return row if row["state"] == "done" else None

    return await until(look)


async def spoken(client: Client, session: str = MAIN) -> list[str]:
    """What the agent said in a session, as its history shows it."""
    page = await client.call("chat.history", {"sessionKey": session})
    said = [message for message in page["messages"] if message["role"] == "assistant"]
    return ["".join(part.get("text", "") for part in message["content"]) for message in said]


async def test_a_message_has_its_story(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as program, program.client() as client:
        await client.say("what is a claw?", key="run-claw")
        row = await finished(program)
        assert (row["channel"], row["chat"], row["runId"], row["reason"]) == ("webchat", MAIN, "run-claw", "answered")
        story = (await told(program, "messages", "show", row["id"]))["timeline"]
        assert [each["station"] for each in story] == ["received", "adopted", "model", "answered", "done"]
        _, shown, _ = await program.run("messages", "show", row["id"])
        assert "what is a claw?" in shown
        assert "its run ended" in shown

        status = await told(program, "channels", "status")
        assert status["channelOrder"] == ["webchat"]
        assert status["channelAccounts"]["webchat"][0]["connected"]
        assert "webchat" not in (await told(program, "health"))["channels"]
        _, listed, _ = await program.run("channels", "list")
        assert "always there" in listed
        assert "channels add telegram" in listed

        page = await client.call("sessions.list", {})
        assert "lastChannel" not in page["sessions"][0]
        mirror = program.state / "agents/main/sessions/sessions.json"

        async def mirrored() -> bool:
            return await asyncio.to_thread(mirror.exists)

        await until(mirrored)  # a moment later
        entries = json.loads(mirror.read_text())
        assert entries[MAIN]["delivery"] == {"kind": "internal"}


async def test_a_crash_in_the_middle_is_gone_on_with(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as program:
        model.then(Say("too late for the first process", delay_s=30.0))
        async with program.client() as client:
            await client.send("is anybody there?", key="run-crash")
            await until(partial(asyncio.to_thread, model.asked, "is anybody there?"))
            program.kill()
            await program.gone()
        model.then(Say("still here"))
        await program.start()
        async with program.client() as client:
            again = {"sessionKey": MAIN, "message": "is anybody there?", "idempotencyKey": "run-crash"}
            assert (await client.call("chat.send", again))["status"] in {"in_flight", "ok"}
            assert await until(partial(spoken, client)) == ["still here"]
            row = await finished(program)
            assert (row["state"], row["reason"]) == ("done", "answered")
            assert (await client.call("chat.send", again))["status"] == "ok"
        await program.stop()
        await program.start()
        async with program.client() as client:
            assert await spoken(client) == ["still here"]


async def test_words_are_sent_into_a_session(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as program, program.client() as client:
        for _ in range(2):
            sent = await told(
                program, "message", "send", "--to", f"webchat:{MAIN}", "-m", "the **news**", "--key", "n1"
            )
            assert sent["state"] == "sent"
            assert sent["messageId"]
        assert await spoken(client) == ["the **news**"]
        heard = [event for event in client.events if event["event"] == "chat"]
        assert len(heard) == 1
        code, _, err = await program.run("message", "send", "--to", "webchat:agent:main:nowhere", "-m", "x", "--json")
        assert code == 1
        assert "gone" in err
        code, _, err = await program.run("message", "send", "--to", "12345", "-m", "x")
        assert code == 1
        assert "no account that can send" in err
        assert model.requests == []
