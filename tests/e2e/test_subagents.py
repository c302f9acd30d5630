"""Sub-agents through the running gateway: at a screen, in a group with few rights, and in a command's own process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Reply, Say, Seen, Silence, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.resident import Client, Resident, StrictModel, resident, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

ANN, GROUP = 1001, -100300


class Delegating(StrictModel):
    """Has a helper do what is asked of it, and passes its report on. `helper` is what the helper says."""

    arguments: dict[str, Any]
    helper: Reply

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        if seen.method == "POST":
            self.replies.insert(0, self._reply(seen.body["messages"]))
        return await super()._answer(seen, writer)

    def _reply(self, messages: list[dict[str, Any]]) -> Reply:
        at = max(index for index, message in enumerate(messages) if message["role"] == "user")
        asked = str(messages[at]["content"])
        if "[Subagent Task]" in asked:
            return self.helper
        if "[A sub-agent" in asked:
            return Say("The helper says: " + ("the pearl." if "found the pearl" in asked else "nothing."))
        if messages[-1]["role"] == "tool" or "find" not in asked:
            return Say(f"After {messages[-1]['role']}: {str(messages[-1]['content'])[:60]}")
        return Use("sessions_spawn", {"task": "look for it", "label": "helper", **self.arguments})


@asynccontextmanager
async def delegating(**arguments: Any) -> AsyncIterator[Delegating]:
    model = Delegating()
    model.refused, model.arguments, model.helper = [], arguments, Say("I have found the pearl.")
    async with model:
        yield model


async def reported(client: Client) -> str:
    """What the parent says once it was told, in its own session."""
    while True:
        for event in client.events:
            payload = event.get("payload") or {}
            if event["event"] == "chat" and payload.get("state") == "final" and "The helper says" in words(payload):
                assert payload["sessionKey"] == "agent:main:main"
                return words(payload)
        await client._read()


def helpers(model: Delegating) -> list[dict[str, Any]]:
    """The requests of sub-agents."""
    return [
        body for body in model.asked("[Subagent Task]") if "[Subagent Task]" in str(body["messages"][-1]["content"])
    ]


@pytest.mark.req("TOOL-17", "LOOP-13")
async def test_a_report_reaches_those_who_watch_and_the_helper_knew_its_task_alone(tmp_path: Path) -> None:
    async with delegating() as model, resident(tmp_path, model.url) as program, program.client() as client:
        (program.state / "workspace" / "AGENTS.md").write_text("# the house rules\n")
        await client.say("my secret is 42")
        first = await client.say("find it")
        assert "Started" in words(first)
        assert await reported(client) == "The helper says: the pearl."
        (request,) = helpers(model)
        assert "42" not in json.dumps(request["messages"][1:])
        assert "## Your Task" in str(request["messages"][0]["content"])
        assert "## SOUL.md" not in str(request["messages"][0]["content"])
        listed = await client.say("/subagents")
        assert words(listed).startswith("1. helper: done")
        rows = (await client.call("sessions.list", {"spawnedBy": "agent:main:main"}))["sessions"]
        assert [row["spawnDepth"] for row in rows] == [1]
        assert not model.refused


@pytest.mark.req("TOOL-18")
async def test_a_model_that_names_a_chat_is_refused(tmp_path: Path) -> None:
    async with delegating(channel="telegram") as model, resident(tmp_path, model.url) as program, program.client() as c:
        assert "do not fit" in words(await c.say("find it"))
        assert not helpers(model)


async def test_killed_while_the_helper_works_the_screen_is_told_once(tmp_path: Path) -> None:
    async with delegating() as model:
        model.helper = Silence()
        program = Resident(tmp_path, model.url)
        await program.start()
        async with program.client() as client:
            await client.say("find it")
        async with asyncio.timeout(10):
            while not helpers(model):  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.02)
        program.kill()
        await program.gone()
        model.helper = Say("I have found the pearl.")
        await program.start()
        try:
            async with program.client() as client:
                history: list[str] = []
                async with asyncio.timeout(20):
                    while not any("The helper says" in text for text in history):
                        await asyncio.sleep(0.05)
                        rows = await client.call("chat.history", {"sessionKey": "agent:main:main"})
                        history = [json.dumps(row) for row in rows["messages"] if row["role"] == "assistant"]
                assert sum("The helper says: the pearl." in text for text in history) == 1
            assert not model.refused
        finally:
            assert await program.stop() == 0


@pytest.mark.req("TOOL-19")
async def test_a_helper_of_a_group_that_may_only_read_cannot_run_programs(tmp_path: Path) -> None:
    async with delegating() as model, TelegramServer() as telegram:
        few = {"requireMention": False, "allowFrom": [ANN], "tools": {"allow": ["read", "group:sessions"]}}
        bot = {"botToken": telegram.token, "apiRoot": telegram.url, "allowFrom": [ANN], "groups": {str(GROUP): few}}
        more = {"channels": {"telegram": bot}, "tools": {"profile": "full", "toolSearch": False}}
        async with resident(tmp_path, model.url, more) as program:
            message = telegram.message(ANN, "find it")
            message |= {"chat": {"id": GROUP, "type": "supergroup", "title": "All"}}
            telegram.push({"message": message})
            async with asyncio.timeout(20):
                while not any("The helper says" in text for text in telegram.shown(GROUP)):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            (request,) = helpers(model)
            names = {tool["function"]["name"] for tool in request.get("tools", ())}
            assert "read" in names
            assert names.isdisjoint({"exec", "process", "write", "edit", "sessions_spawn", "message"})
            assert program.process is not None


async def test_stopping_the_parent_stops_its_helper(tmp_path: Path) -> None:
    async with delegating() as model:
        model.helper = Silence()
        async with resident(tmp_path, model.url) as program, program.client() as client:
            await client.say("find it")
            async with asyncio.timeout(10):
                while not helpers(model):  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            assert words(await client.say("/stop")) == "Stopped, and 1 sub-agent too."
            assert "helper: stopped" in words(await client.say("/subagents"))
            await asyncio.sleep(0.3)
            assert not model.asked("[A sub-agent")


async def test_a_command_in_its_own_process_waits_for_its_helper(tmp_path: Path) -> None:
    async with delegating() as model:
        program = Resident(tmp_path, model.url)
        code, out, err = await program.run("agent", "--local", "-m", "find it")
        assert code == 0, err
        assert "Started" in out
        assert "The helper says: the pearl." in out
