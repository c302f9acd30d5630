"""Killed around a sub-agent: its parent gets the report once, in the chat and thread it was asked in."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Reply, Say, Seen, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.crash.points import KIN
from tests.e2e.crash.test_points import GROUP, TOPIC, Doomed, died, in_topic
from tests.e2e.resident import StrictModel

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

ANN = 1001


class Delegating(StrictModel):
    """Has a helper do what it is asked, looks whether there is one where it does not know, and passes on the report."""

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        if seen.method == "POST":
            self.replies.insert(0, _reply(seen.body["messages"]))
        return await super()._answer(seen, writer)


def _reply(messages: list[dict[str, Any]]) -> Reply:
    at = max(index for index, message in enumerate(messages) if message["role"] == "user")
    asked = str(messages[at]["content"])
    results = [str(message["content"]) for message in messages[at:] if message["role"] == "tool"]
    if "[Subagent Task]" in asked:
        return Say("The helper has found the pearl.")
    if "[A sub-agent" in asked:
        return Say("Here it is: " + ("the pearl." if "found the pearl" in asked else "nothing."))
    if not results or "No sub-agent" in results[-1]:
        return Use("sessions_spawn", {"task": "look for it", "label": "helper"})
    if re.search("Started|helper:", results[-1]):
        return Say("A helper is under way.")
    return Use("subagents", {"action": "list"})


@asynccontextmanager
async def asked(root: Path, *, topic: bool) -> AsyncIterator[tuple[Doomed, TelegramServer, Delegating]]:
    model = Delegating()
    model.refused = []
    async with model, TelegramServer() as telegram:
        group = {"requireMention": False, "allowFrom": [ANN], "tools": {"allow": ["group:sessions"]}}
        bot = {"botToken": telegram.token, "apiRoot": telegram.url, "allowFrom": [ANN], "groups": {str(GROUP): group}}
        more = {
            "channels": {"telegram": bot},
            "messages": {"queue": {"debounceMs": 0}, "inbound": {"debounceMs": 0}},
            "session": {"dmScope": "per-channel-peer"},
        }
        program = Doomed(root, model.url, more)
        message = telegram.message(ANN, "find it")
        if topic:
            message |= {
                "chat": {"id": GROUP, "type": "supergroup", "title": "All", "is_forum": True},
                "message_thread_id": TOPIC,
                "is_topic_message": True,
            }
        telegram.push({"message": message})
        try:
            yield program, telegram, model
        finally:
            program.kill()
            await program.gone()


async def answered(telegram: TelegramServer, chat: int) -> list[str]:
    """The answers that pass on the report, once there is one and nothing more comes."""
    async with asyncio.timeout(30):
        while not any("Here it is" in text for text in telegram.shown(chat)):  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.7)
    return [text for text in telegram.shown(chat) if "Here it is" in text]


@pytest.mark.parametrize("point", KIN)
async def test_a_report_is_passed_on_once(tmp_path: Path, point: str) -> None:
    async with asked(tmp_path, topic=False) as (program, telegram, model):
        program.dies(point)
        await died(program, 1)
        assert await answered(telegram, ANN) == ["Here it is: the pearl."], program.log()
        assert not model.refused


@pytest.mark.req("TOOL-20")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("child-at-work", "child-at-work"),
        ("after-report-stored", "before-report-given"),
        ("after-report-given", "before-report-turn"),
    ],
)
async def test_killed_twice_it_still_goes_to_the_thread_it_was_asked_in(
    tmp_path: Path, first: str, second: str
) -> None:
    async with asked(tmp_path, topic=True) as (program, telegram, model):
        program.dies(first, second)
        await died(program, 2)
        assert await answered(telegram, GROUP) == ["Here it is: the pearl."], program.log()
        assert in_topic(telegram)
        assert not model.refused
