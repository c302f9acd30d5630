"""Topics of a forum: who may write in one may not in another, and nobody but the owner answers what waits there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import logged, until
from tests.e2e.resident import resident, strict_model
from tests.e2e.test_approvals import card
from tests.hostile.cases import Hostile, of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
OWNER, FORUM = 42, -100600


def settings(telegram: TelegramServer) -> dict[str, Any]:
    topics = {"5": {"allowFrom": [OWNER, 43]}, "6": {"allowFrom": [OWNER, 44]}}
    forum = {"allowFrom": [OWNER], "topics": topics, "tools": {"allow": ["exec"]}}
    bot = {"botToken": telegram.token, "apiRoot": telegram.url, "allowFrom": [OWNER], "groups": {str(FORUM): forum}}
    return {
        "tools": {"exec": {"host": "gateway", "security": "full", "ask": "always"}},
        "channels": {"telegram": bot},
        "commands": {"ownerAllowFrom": [f"telegram:{OWNER}"]},
    }


def said(telegram: TelegramServer, case: Hostile, name: str) -> dict[str, Any]:
    """The update, with the id of the question that waits."""
    text = str(case.get("text", "")).replace("{id}", name)
    place: dict[str, Any] = {"chat": {"id": FORUM, "type": "supergroup", "title": "G", "is_forum": True}}
    if case["topic"]:
        place |= {"message_thread_id": case["topic"], "is_topic_message": True}
    changes = json.loads(json.dumps(case.get("update", {})).replace("{id}", name))
    body = {**telegram.message(case["user"], text), **place, **changes}
    if text[:1] in "/@" and text:
        kind = "bot_command" if text[0] == "/" else "mention"
        body["entities"] = [{"type": kind, "offset": 0, "length": len(text.split(" ")[0])}]
    if not text:
        del body["text"]
    if pressed := case.get("press"):
        who = {"id": case["user"], "is_bot": False, "first_name": "User42", "username": "user42"}
        data = pressed.replace("{id}", name)
        return {"callback_query": {"id": case.id, "from": who, "message": body, "data": data, "chat_instance": "1"}}
    return {case.get("kind", "message"): body}


async def test_a_topic_is_its_own_and_its_members_are_no_owners(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    async with (
        strict_model() as model,
        TelegramServer() as telegram,
        resident(tmp_path, model.url, settings(telegram)) as program,
    ):
        forum = {"chat": {"id": FORUM, "type": "supergroup", "title": "G", "is_forum": True}, "is_topic_message": True}
        mention = {"entities": [{"type": "mention", "offset": 0, "length": 10}]}
        for number, (user, topic) in enumerate(((43, 5), (44, 6))):  # the controls
            model.then(Say(f"heard {user}"))
            telegram.say(user, f"@garra_bot control {number}", **forum, **mention, message_thread_id=topic)
            await until(lambda: any(f"heard {user}" in text for text in telegram.shown(FORUM)), 30)  # noqa: B023
        model.then(Use("exec", {"command": f"touch {mark}"}), Say("all done"))
        telegram.say(OWNER, "@garra_bot make it", **forum, **mention, message_thread_id=5)
        await until(lambda: card(telegram, FORUM), 30)
        shown = card(telegram, FORUM)
        assert shown is not None
        assert str(shown["message_thread_id"]) == "5"
        rows = json.loads(shown["reply_markup"]) if isinstance(shown["reply_markup"], str) else shown["reply_markup"]
        name = str(rows["inline_keyboard"][0][0]["callback_data"]).split(" ")[1]
        asked = len(model.requests)
        for case in of("topics"):
            telegram.push(said(telegram, case, name))
        yes = {
            "text": f"/approve@garra_bot {name[:8]}",
            "entities": [{"type": "bot_command", "offset": 0, "length": 18}],
        }
        before = len(telegram.shown(OWNER))
        telegram.say(OWNER, "/whoami")
        await until(lambda: len(telegram.shown(OWNER)) > before, 30)
        await asyncio.sleep(1.0)
        heard = [json.dumps(seen.body["messages"][-1]) for seen in model.requests[asked:]]
        assert (heard, mark.exists()) == ([], False)
        telegram.push({"message": {**telegram.message(OWNER, ""), **forum, "message_thread_id": 5, **yes}})
        await until(lambda: any("all done" in text for text in telegram.shown(FORUM)), 30)
        assert mark.exists()
        assert "Traceback" not in logged(program)
