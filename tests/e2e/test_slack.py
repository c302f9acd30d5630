"""The whole program on a Slack of the test's own: pairing, threads, outages, a crash in the middle."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.testing.slack import Fault, SlackServer
from tests.e2e.outside import logged, until
from tests.e2e.resident import Resident, StrictModel, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

ANN, BOB, ROOM = "U1001", "U1002", "C500"


@dataclass
class Chat:
    """A gateway with an app."""

    program: Resident
    model: StrictModel
    slack: SlackServer

    def said(self, user: str) -> list[str]:
        return self.slack.shown(self.slack.dm(user))

    async def answered(self, user: str, text: str) -> None:
        """Somebody writes, and is answered."""
        self.slack.say(user, text)
        await self.reached(user, text)

    async def reached(self, user: str, text: str) -> None:
        await until(lambda: any(text in said for said in self.said(user)), 40)

    def count(self, user: str, text: str) -> int:
        return sum(text in said for said in self.said(user))

    def room(self, user: str, text: str, **more: Any) -> dict[str, Any]:
        """Somebody names the bot in a channel: Slack tells of it twice."""
        message = self.slack.say(user, f"<@{self.slack.bot}> {text}", ROOM, **more)
        self.slack.happens({**message, "type": "app_mention", "channel": ROOM})
        return message


@asynccontextmanager
async def chat(root: Path, **settings: Any) -> AsyncIterator[Chat]:
    async with strict_model() as model, SlackServer(retry_s=1.0) as slack:
        own = {"botToken": slack.bot_token, "appToken": slack.app_token, "apiRoot": slack.url, **settings}
        more = {"channels": {"slack": own}, "messages": {"inbound": {"debounceMs": 0}}}
        async with resident(root, model.url, more) as program:
            await until(lambda: slack.sockets)
            yield Chat(program, model, slack)


async def test_a_stranger_is_paired_and_a_restart_keeps_it(tmp_path: Path) -> None:
    async with chat(tmp_path) as here:
        here.slack.say(ANN, "hello")
        await until(lambda: here.said(ANN), 40)
        assert here.model.requests == []
        code = re.search(r"\b[A-HJ-NP-Z2-9]{8}\b", here.said(ANN)[0])
        assert code is not None
        done, out, err = await here.program.run("pairing", "approve", "slack", code[0])
        assert done == 0, out + err
        await here.answered(ANN, "are you there?")
        await here.program.stop()
        here.slack.miss(ANN, "said while you were away")
        await here.program.start()
        await here.reached(ANN, "said while you were away")
        await here.answered(ANN, "and now?")
        assert [here.count(ANN, text) for text in ("are you there?", "while you were away", "and now?")] == [1, 1, 1]
        seen = logged(here.program)
        assert here.slack.bot_token not in seen
        assert here.slack.app_token not in seen
        assert "secret-ticket" not in seen


async def test_a_kill_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async with chat(tmp_path, allowFrom=[ANN, BOB]) as here:
        await here.answered(ANN, "m0.")
        for number in range(1, 4):
            here.slack.say(ANN, f"m{number}.")
            here.slack.say(BOB, f"b{number}.")
            here.program.kill()
            await here.program.gone()
            here.slack.say(ANN, f"away{number}.")
            await here.program.start()
            await here.reached(ANN, f"away{number}.")
            await here.reached(BOB, f"b{number}.")
        texts = ["m0.", *(f"{kind}{number}." for number in range(1, 4) for kind in ("m", "away"))]
        assert [here.count(ANN, text) for text in texts] == [1] * len(texts)
        assert [here.count(BOB, f"b{number}.") for number in range(1, 4)] == [1, 1, 1]


async def test_an_answer_half_sent_at_a_kill_is_there_once(tmp_path: Path) -> None:
    async with chat(tmp_path, allowFrom=[ANN]) as here:
        await here.answered(ANN, "before")
        here.slack.fail("chat.postMessage", Fault(kind="hang_after"))
        here.slack.say(ANN, "half sent")
        await here.reached(ANN, "half sent")
        here.program.kill()
        await here.program.gone()
        await here.program.start()
        await here.answered(ANN, "after")
        assert here.count(ANN, "half sent") == 1


async def test_a_channel_a_thread_and_two_events_for_one_mention(tmp_path: Path) -> None:
    async with chat(tmp_path, channels={ROOM: {"users": [ANN]}}, replyToMode="all") as here:
        here.slack.say(ANN, "nobody is asked", ROOM)
        here.room(BOB, "let me in")
        asked = here.room(ANN, "what now?")
        await until(lambda: any("what now?" in text for text in here.slack.shown(ROOM)), 40)
        here.room(ANN, "in the thread", thread_ts=asked["ts"])
        await until(lambda: any("in the thread" in text for text in here.slack.shown(ROOM)), 40)
        bots = [one for one in here.slack.messages[ROOM] if one["user"] == here.slack.bot]
        assert [one["thread_ts"] for one in bots] == [asked["ts"], asked["ts"]]
        assert not here.model.asked("let me in")
        assert len(here.model.asked("what now?")) <= 2


async def test_a_slack_that_goes_away_is_found_again(tmp_path: Path) -> None:
    async with chat(tmp_path, allowFrom=[ANN]) as here:
        await here.answered(ANN, "before")
        await here.slack.__aexit__(None, None, None)
        here.slack.miss(ANN, "nobody is listening")
        await here.slack.__aenter__()
        await here.reached(ANN, "nobody is listening")
        await here.answered(ANN, "after")
        assert [here.count(ANN, text) for text in ("before", "nobody is listening", "after")] == [1, 1, 1]
