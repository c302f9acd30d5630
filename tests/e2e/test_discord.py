"""The whole program on a Discord of the test's own: pairing, servers, sessions that go on after a crash."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.testing.discord import DiscordServer, Fault
from tests.e2e.outside import logged, until
from tests.e2e.resident import Resident, StrictModel, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

ANN, BOB, GUILD, ROOM, THREAD = "1001", "1002", "77", "500", "501"
SERVER: dict[str, Any] = {
    "id": GUILD,
    "channels": [{"id": ROOM, "type": 0, "name": "general", "parent_id": "400"}],
    "threads": [{"id": THREAD, "type": 11, "name": "talk", "parent_id": ROOM}],
    "members": [],
}


@dataclass
class Chat:
    """A gateway with a bot."""

    program: Resident
    model: StrictModel
    discord: DiscordServer

    def said(self, user: str) -> list[str]:
        return self.discord.shown(self.discord.dm(user))

    async def answered(self, user: str, text: str) -> None:
        """Somebody writes, and is answered."""
        self.discord.say(user, text)
        await self.reached(user, text)

    async def reached(self, user: str, text: str) -> None:
        await until(lambda: any(text in said for said in self.said(user)), 40)

    def count(self, user: str, text: str) -> int:
        return sum(text in said for said in self.said(user))

    def room(self, user: str, text: str, channel: str = ROOM, *, named: bool = True, **more: Any) -> None:
        call = {"content": f"<@{self.discord.bot}> {text}", "mentions": [{"id": self.discord.bot}]} if named else {}
        member = {"roles": more.pop("roles", [])}
        self.discord.say(user, text, channel, **{"guild_id": GUILD, "member": member, **call, **more})


@asynccontextmanager
async def chat(root: Path, **settings: Any) -> AsyncIterator[Chat]:
    async with strict_model() as model, DiscordServer(guilds=[SERVER], every_ms=400) as discord:
        own = {"token": discord.token, "apiRoot": discord.url, **settings}
        more = {"channels": {"discord": own}, "messages": {"inbound": {"debounceMs": 0}}}
        async with resident(root, model.url, more) as program:
            await discord.entered()
            yield Chat(program, model, discord)


async def test_a_stranger_is_paired_and_a_restart_keeps_it(tmp_path: Path) -> None:
    async with chat(tmp_path) as here:
        here.discord.say(ANN, "hello")
        await until(lambda: here.said(ANN), 40)
        assert here.model.requests == []
        code = re.search(r"\b[A-HJ-NP-Z2-9]{8}\b", here.said(ANN)[0])
        assert code is not None
        done, out, err = await here.program.run("pairing", "approve", "discord", code[0])
        assert done == 0, out + err
        await here.answered(ANN, "are you there?")
        await here.program.stop()
        here.discord.say(ANN, "said while you were away")
        await here.program.start()
        await here.reached(ANN, "said while you were away")
        await here.answered(ANN, "and now?")
        assert [here.count(ANN, text) for text in ("are you there?", "while you were away", "and now?")] == [1, 1, 1]
        assert here.discord.begun[:2] == ["identify", "resume"]
        assert here.discord.token not in logged(here.program)


async def test_a_kill_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async with chat(tmp_path, allowFrom=[ANN, BOB]) as here:
        await here.answered(ANN, "m0.")
        for number in range(1, 4):
            here.discord.say(ANN, f"m{number}.")
            here.discord.say(BOB, f"b{number}.")
            here.program.kill()
            await here.program.gone()
            here.discord.say(ANN, f"away{number}.")
            await here.program.start()
            await here.reached(ANN, f"away{number}.")
            await here.reached(BOB, f"b{number}.")
        texts = ["m0.", *(f"{kind}{number}." for number in range(1, 4) for kind in ("m", "away"))]
        assert [here.count(ANN, text) for text in texts] == [1] * len(texts)
        assert [here.count(BOB, f"b{number}.") for number in range(1, 4)] == [1, 1, 1]


@pytest.mark.parametrize("forgets", [False, True])
async def test_an_answer_half_sent_at_a_kill_is_there_once(tmp_path: Path, *, forgets: bool) -> None:
    async with chat(tmp_path, allowFrom=[ANN]) as here:
        await here.answered(ANN, "before")
        here.discord.fail("/messages", Fault(kind="hang_after"))
        here.discord.say(ANN, "half sent")
        await here.reached(ANN, "half sent")
        here.program.kill()
        await here.program.gone()
        if forgets:  # what was enforced some minutes ago; the session shows what was sent
            here.discord.nonces.clear()
        await here.program.start()
        await here.answered(ANN, "after")
        assert here.count(ANN, "half sent") == 1


async def test_a_session_that_is_gone_is_made_up_for(tmp_path: Path) -> None:
    async with chat(tmp_path, allowFrom=[ANN], guilds={GUILD: {"users": [ANN]}}) as here:
        await here.answered(ANN, "before")
        here.program.kill()
        await here.program.gone()
        here.discord.say(ANN, "into the gap")
        here.room(ANN, "in a room nobody spoke in")
        here.discord.guilds = [
            {**SERVER, "channels": [{**SERVER["channels"][0], "last_message_id": here.discord.id()}]}
        ]
        here.discord.forget()
        await here.program.start()
        await here.reached(ANN, "into the gap")
        await until(lambda: any("nobody spoke in" in text for text in here.discord.shown(ROOM)), 40)
        await here.answered(ANN, "after")
        assert [here.count(ANN, text) for text in ("before", "into the gap", "after")] == [1, 1, 1]
        assert here.discord.begun[-2:] == ["refused", "identify"]


async def test_a_server_a_thread_and_a_role(tmp_path: Path) -> None:
    guilds = {GUILD: {"users": [ANN], "roles": ["70"], "channels": {ROOM: {}}}}
    async with chat(tmp_path, guilds=guilds) as here:
        here.room(ANN, "nobody is asked", named=False)
        here.room(BOB, "let me in")
        here.room(ANN, "elsewhere", channel="502")
        here.room(ANN, "what now?")
        await until(lambda: any("what now?" in text for text in here.discord.shown(ROOM)), 40)
        here.room(ANN, "in the thread", channel=THREAD)
        await until(lambda: any("in the thread" in text for text in here.discord.shown(THREAD)), 40)
        here.room(BOB, "with a role", roles=["70"])
        await until(lambda: any("with a role" in text for text in here.discord.shown(ROOM)), 40)
        assert not here.model.asked("let me in")
        assert not here.model.asked("elsewhere")


async def test_a_discord_that_goes_away_is_found_again(tmp_path: Path) -> None:
    async with chat(tmp_path, allowFrom=[ANN]) as here:
        await here.answered(ANN, "before")
        await here.discord.__aexit__(None, None, None)
        here.discord.say(ANN, "nobody is listening")
        await here.discord.__aenter__()
        await here.reached(ANN, "nobody is listening")
        await here.answered(ANN, "after")
        assert [here.count(ANN, text) for text in ("before", "nobody is listening", "after")] == [1, 1, 1]
