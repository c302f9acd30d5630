"""Killed at each named point, once and twice in a row: every message is answered once, in order, where it was asked."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Reply, Say, Seen, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.crash.points import DOUBTS, POINTS
from tests.e2e.resident import ROOT, Resident, StrictModel

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

ANN, BOB, OWNER, GROUP, TOPIC = 1001, 1002, 1003, -100200, 7
SAID = {ANN: ("ann-1 look", "ann-2 look", "ann-3"), BOB: ("bob-1 look", "bob-2"), GROUP: ("all-1", "all-2")}
"""What is written where; with `look` the model calls a tool first."""


class Answering(StrictModel):
    """Answers each message with its tag, in several pieces; looks around first when it is asked to."""

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        if seen.method == "POST":
            self.replies.insert(0, _reply(seen.body["messages"]))
        return await super()._answer(seen, writer)


def _reply(messages: list[dict[str, Any]]) -> Reply:
    """What follows from the last message that has a tag."""
    looked = False
    for message in reversed(messages):
        tags = re.findall(r"\b(?:ann|bob|all)-\d\b", str(message.get("content"))) if message["role"] == "user" else []
        if tags:
            look = "look" in str(message["content"]) and not looked
            return Use("ls", {"path": "."}) if look else Say(f"The answer to {tags[-1]} is here, in a few more words.")
        looked = looked or message["role"] == "tool"
    return Say("nothing was asked")


class Doomed(Resident):
    """The program that dies where `deaths` says."""

    module = "tests.e2e.crash"

    def dies(self, *points: str) -> None:
        (self.state / "deaths").write_text("\n".join(points))
        self.env["PYTHONPATH"] = str(ROOT)


@asynccontextmanager
async def asked(root: Path) -> AsyncIterator[tuple[Doomed, TelegramServer, Answering]]:
    """A program, not started, whose bot has been written to already."""
    model = Answering()
    model.refused = []
    async with model, TelegramServer() as telegram:
        bot = {
            "botToken": telegram.token,
            "apiRoot": telegram.url,
            "allowFrom": [ANN, BOB],
            "groups": {str(GROUP): {"requireMention": False, "allowFrom": [ANN]}},
        }
        program = Doomed(
            root,
            model.url,
            {
                "channels": {"telegram": bot},
                "commands": {"ownerAllowFrom": [f"telegram:{OWNER}"]},
                "messages": {"queue": {"mode": "followup", "debounceMs": 0}, "inbound": {"debounceMs": 0}},
                "session": {"dmScope": "per-channel-peer"},
            },
        )
        for chat, texts in SAID.items():
            for text in texts:
                telegram.push({"message": _message(telegram, chat, text)})
        try:
            yield program, telegram, model
        finally:
            program.kill()
            await program.gone()


def _message(telegram: TelegramServer, chat: int, text: str) -> dict[str, Any]:
    message = telegram.message(ANN if chat == GROUP else chat, text)
    if chat == GROUP:
        message |= {
            "chat": {"id": GROUP, "type": "supergroup", "title": "All", "is_forum": True},
            "message_thread_id": TOPIC,
            "is_topic_message": True,
        }
    return message


async def died(program: Doomed, times: int) -> None:
    """Start it as often as it is to die, then once more, to stay."""
    for _ in range(times):
        await program.launch()
        async with asyncio.timeout(30):
            await program.gone()
        assert program.process is not None
        assert program.process.returncode == -9, program.log()
    await program.start()


def answered(telegram: TelegramServer, chat: int) -> list[str]:
    """The tags the bot has answered in a chat, in the order in which they stand there."""
    return [tag for text in telegram.shown(chat) for tag in re.findall(r"answer to (\S+) is here", text)]


def tags(texts: Sequence[str]) -> list[str]:
    return [text.split()[0] for text in texts]


def in_topic(telegram: TelegramServer) -> bool:
    """Whether all that was sent to the group went to the topic it was asked in."""
    sent = [call.params for call in telegram.asked("sendMessage") if call.params["chat_id"] == GROUP]
    return bool(sent) and {call.get("message_thread_id") for call in sent} == {TOPIC}


async def states(program: Doomed) -> list[dict[str, Any]]:
    code, out, err = await program.run("messages", "list", "--out", "--json", "--limit", "100")
    assert code == 0, err
    rows: list[dict[str, Any]] = json.loads(out)["messages"]
    return rows


async def settled(program: Doomed) -> list[dict[str, Any]]:
    """What was to be sent, once nothing of it waits any more."""
    async with asyncio.timeout(40):
        while True:
            rows = await states(program)
            waits = any(row["state"] in ("pending", "sending") for row in rows)
            if not waits and sum(row["text"].startswith("The answer") for row in rows) == sum(map(len, SAID.values())):
                return rows
            await asyncio.sleep(0.2)


async def told_apart(program: Doomed, telegram: TelegramServer) -> list[str]:
    """The tags whose answer is in doubt. All others stand where they were asked, once and in order, and of those that
    are in doubt none stands there twice; its owner knows of each.
    """
    rows = await settled(program)
    doubtful = [tag for row in rows if row["state"] == "unsure" for tag in re.findall(r"answer to (\S+)", row["text"])]
    for chat, texts in SAID.items():
        found = answered(telegram, chat)
        assert found == [tag for tag in tags(texts) if tag in found], telegram.shown(chat)
        assert set(tags(texts)) - set(found) <= set(doubtful), telegram.shown(chat)
    assert len("".join(telegram.shown(OWNER)).split("may not have arrived")) - 1 >= bool(doubtful)
    return doubtful


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("point", POINTS)
async def test_each_is_answered_once_and_in_order(tmp_path: Path, point: str, times: int) -> None:
    async with asked(tmp_path) as (program, telegram, model):
        program.dies(*[point] * times)
        await died(program, times)
        doubtful = await told_apart(program, telegram)
        assert len(doubtful) < times * len(SAID)  # only those that were with the platform when it died elsewhere
        assert in_topic(telegram)
        assert not model.refused


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("point", DOUBTS)
async def test_what_may_have_arrived_is_not_sent_twice_and_the_owner_is_told(
    tmp_path: Path, point: str, times: int
) -> None:
    async with asked(tmp_path) as (program, telegram, model):
        program.dies(*[point] * times)
        await died(program, times)
        assert 1 <= len(await told_apart(program, telegram)) <= times * len(SAID)
        assert not model.refused
