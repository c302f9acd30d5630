"""What of its owner an agent is told, and where: at his own screen and in his own chat, not where others read along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from garra.testing.model_server import Say
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import resident, strict_model

pytestmark = pytest.mark.e2e
OWNER, GUEST, GROUP = 42, 7007, -5000
SECRETS = ("Elm Street 9", "the safe is 4711")


async def test_who_reads_along_is_told_nothing_of_the_owner(tmp_path: Path) -> None:
    async with strict_model() as model, TelegramServer() as telegram:
        bot = {
            "botToken": telegram.token, "apiRoot": telegram.url, "dmPolicy": "open", "allowFrom": ["*"],
            "groups": {str(GROUP): {"requireMention": False}}, "groupPolicy": "open",
        }  # fmt: skip
        more = {
            "channels": {"telegram": bot}, "session": {"dmScope": "per-channel-peer"},
            "commands": {"ownerAllowFrom": [f"telegram:{OWNER}"]},
        }  # fmt: skip
        async with resident(tmp_path, model.url, more) as program:
            workspace = program.state / "workspace"
            workspace.mkdir(exist_ok=True)
            (workspace / "USER.md").write_text(f"Lives at {SECRETS[0]}.\n")
            (workspace / "MEMORY.md").write_text(f"- {SECRETS[1]}\n")
            model.then(Say("one"), Say("two"), Say("three"))
            telegram.say(OWNER, "it is me")
            await until(lambda: telegram.shown(OWNER))
            telegram.say(GUEST, "hello there")
            await until(lambda: telegram.shown(GUEST))
            here = {"chat": {"id": GROUP, "type": "supergroup", "title": "Home"}}
            telegram.push({"message": {**telegram.message(OWNER, "hello all"), **here}})
            await until(lambda: telegram.shown(GROUP))
            told = {words: json.dumps(model.asked(words)[0]) for words in ("it is me", "hello there", "hello all")}
            for secret in SECRETS:
                assert secret in told["it is me"]
                assert secret not in told["hello there"]
                assert secret not in told["hello all"]
