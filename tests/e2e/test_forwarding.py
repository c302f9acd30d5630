"""Questions that the running program carries to other chats: shown once, answered by who may, ended everywhere."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from garra.testing.telegram import Fault, TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import resident, strict_model
from tests.e2e.test_approvals import ASK, OWNER, card, press, results

pytestmark = pytest.mark.e2e

OPS, MEMBER, ROOM, TOPIC = 3003, 4004, -700, 77


def settings(near: TelegramServer, far: TelegramServer) -> dict[str, Any]:
    common = {"apiRoot": near.url, "botToken": near.token, "allowFrom": [OWNER]}
    ops = {
        "apiRoot": far.url,
        "botToken": far.token,
        "allowFrom": [OPS],
        "groups": {str(ROOM): {"requireMention": False, "allowFrom": [OPS, MEMBER]}},
        "execApprovals": {"approvers": [OPS]},
    }
    target = {"channel": "telegram", "to": str(ROOM), "accountId": "ops", "threadId": str(TOPIC)}
    return {
        **ASK,
        "channels": {"telegram": {"accounts": {"default": common, "ops": ops}}},
        "commands": {"ownerAllowFrom": [f"telegram:{OWNER}"]},
        "approvals": {"exec": {"enabled": True, "mode": "targets", "targets": [target]}},
    }


def cards(telegram: TelegramServer) -> int:
    return sum("May the agent" in str(call.params.get("text")) for call in telegram.asked("sendMessage"))


@pytest.mark.req("TOOL-13")
async def test_a_question_is_answered_in_the_room_that_the_owner_named(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    async with (
        strict_model() as model,
        TelegramServer() as near,
        TelegramServer(token="900000:ops", username="ops_bot", bot=900000) as far,
        resident(tmp_path, model.url, settings(near, far)) as program,
    ):
        model.then(Use("exec", {"command": f"touch {mark}"}))
        near.say(OWNER, "make it")
        await until(lambda: card(near, OWNER) and card(far, ROOM), 30)
        shown = card(far, ROOM)
        assert shown is not None
        assert (str(shown["message_thread_id"]), f"touch {mark}" in shown["text"]) == (str(TOPIC), True)

        program.kill()
        await program.gone()
        model.then(Use("exec", {"command": f"touch {mark}"}, id="c2"), Say("all done"))
        await program.start()
        await until(lambda: any("interrupted" in text for text in results(model)), 30)
        await asyncio.sleep(0.5)
        assert (cards(near), cards(far)) == (1, 1), "what was asked before the crash is not asked twice"

        press(far, shown, ROOM, MEMBER, "Allow once")
        await until(lambda: any("Only an owner" in text for text in far.shown(ROOM)), 30)
        assert not mark.exists()
        press(far, shown, ROOM, OPS, "Allow once")
        await until(mark.exists, 30)
        await until(lambda: any("all done" in text for text in near.shown(OWNER)), 30)
        for telegram in (near, far):
            await until(lambda: telegram.asked("editMessageText"), 30)  # noqa: B023 - waited for at once
            (edited,) = [
                call.params for call in telegram.asked("editMessageText") if "May the agent" in str(call.params)
            ]
            assert f"Allowed once by telegram:ops:{OPS}" in edited["text"]
            assert "Allow" not in json.dumps(edited.get("reply_markup") or "")


async def test_a_card_that_the_platform_refuses_is_one_that_nobody_sees(tmp_path: Path) -> None:
    async with strict_model() as model, TelegramServer() as near:
        alone = {"telegram": {"apiRoot": near.url, "botToken": near.token, "allowFrom": [OWNER]}}
        more = {**ASK, "channels": alone, "commands": {"ownerAllowFrom": [f"telegram:{OWNER}"]}}
        async with resident(tmp_path, model.url, more):
            model.then(Use("exec", {"command": "touch x"}), Say("done"))
            near.fail("sendMessage", Fault(403, "Forbidden: bot was blocked by the user"))
            near.say(OWNER, "make it")
            await until(lambda: len(model.requests) > 1 and "did not take it" in results(model)[-1], 30)
