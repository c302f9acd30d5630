"""Forgetting one person: nothing of their words is left on the disk, and others lose nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from garra.testing.model_server import Say
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import resident, strict_model

pytestmark = pytest.mark.e2e
ANN, OWNER, GROUP = 1001, 42, -5000


def holding(state: Path, word: str) -> list[str]:
    """The files that have a word in them."""
    files = (path for path in state.rglob("*") if path.is_file())
    return [str(path.relative_to(state)) for path in files if word.encode() in path.read_bytes()]


async def test_nothing_of_a_person_s_words_is_left_and_others_lose_nothing(tmp_path: Path) -> None:
    async with strict_model() as model, TelegramServer() as telegram:
        bot = {"botToken": telegram.token, "apiRoot": telegram.url, "allowFrom": [ANN, OWNER]}
        groups = {"groups": {str(GROUP): {"requireMention": False}}}
        more = {"channels": {"telegram": {**bot, **groups}}, "session": {"dmScope": "per-channel-peer"}}
        async with resident(tmp_path, model.url, more) as program:
            model.then(Say("noted"), Say("heard"), Say("fine"))
            telegram.say(ANN, "my word is zanzibar")
            await until(lambda: telegram.shown(ANN))
            here = {"chat": {"id": GROUP, "type": "supergroup", "title": "Home"}}
            telegram.push({"message": {**telegram.message(ANN, "in the group I say madagascar"), **here}})
            await until(lambda: telegram.shown(GROUP))
            telegram.say(OWNER, "mine is borneo")
            await until(lambda: telegram.shown(OWNER))
            code, _, err = await program.run("forget", f"telegram:{ANN}", "--yes")
            assert code != 0
            assert "a gateway is running" in err
            assert holding(program.state, "zanzibar")
            assert holding(program.state, "madagascar")
            code, _, err = await program.run("memory", "index")
            assert code == 0, err
            await program.stop()
            assert any("memory.sqlite" in name for name in holding(program.state, "zanzibar"))
            code, out, _ = await program.run("forget", f"telegram:{ANN}", "--dry-run", "--json")
            assert code == 0
            told = json.loads(out)
            assert told["conversations"] == [f"agent:main:telegram:direct:{ANN}"]
            assert (told["lines"], told["received"], told["sent"]) == (1, 2, 2)
            assert holding(program.state, "zanzibar")
            code, out, err = await program.run("forget", f"telegram:{ANN}", "--yes", "--json")
            assert code == 0, err
            assert json.loads(out) == {**told, "dryRun": False}
            assert holding(program.state, "zanzibar") == []
            assert holding(program.state, "madagascar") == []
            assert holding(program.state, "borneo")
            _, out, _ = await program.run("sessions", "list", "--json")
            keys = {row["key"] for row in json.loads(out)["sessions"]}
            assert keys == {f"agent:main:telegram:direct:{OWNER}", f"agent:main:telegram:group:{GROUP}"}
            await program.start()
            model.then(Say("go on"))
            telegram.say(OWNER, "and now?")
            await until(lambda: "go on" in telegram.shown(OWNER))
