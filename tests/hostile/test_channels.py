"""What comes by a chat or a webhook from somebody who only looks like the owner, or is not the caller he says he is."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from garra.testing.webhook import SECRET, message, signed
from tests.e2e.outside import logged
from tests.e2e.resident import StrictModel
from tests.e2e.test_chat_attack import GROUP, OWNER, Chat, chat
from tests.e2e.test_webhook import world
from tests.hostile.cases import Hostile, of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def update(here: Chat, case: Hostile) -> dict[str, Any]:
    said = here.telegram.message(case["user"], case.get("text", ""))
    if case.get("group"):
        said |= {"chat": {"id": GROUP, "type": "supergroup", "title": "G"}}
    length = len(str(said["text"]).split(" ")[0])
    kind = "bot_command" if str(said["text"]).startswith("/") else "mention"
    if length and said["text"][0] in "/@":
        said |= {"entities": [{"type": kind, "offset": 0, "length": length}]}
    if not said["text"]:
        del said["text"]
    if pressed := case.get("press"):
        asker = {"id": case["user"], "is_bot": False, "first_name": "User42", "username": "user42"}
        return {"callback_query": {"id": case.id, "from": asker, "data": pressed, "message": said}}
    return {case.get("kind", "message"): said | case.get("update", {})}


async def test_nobody_is_taken_for_the_owner(tmp_path: Path) -> None:
    async with chat(tmp_path) as here:
        await here.answered(here.telegram, "first words")  # the control
        settings = await asyncio.to_thread(here.program.config_file.read_bytes)
        for case in of("people"):
            here.telegram.push(update(here, case))
        await here.answered(here.telegram, "last words")
        taken = [json.dumps(seen.body["messages"][-1]) for seen in here.model.requests]
        assert len(taken) == 2, taken
        assert not here.telegram.shown(GROUP)
        assert await asyncio.to_thread(here.program.config_file.read_bytes) == settings
        shown = [said for (where, _), said in here.telegram.messages.items() if where not in (OWNER, GROUP)]
        assert all("Pairing code" in said["text"] or "pair" in said["text"].lower() for said in shown), shown
        assert "Traceback" not in logged(here.program)


def call(case: Hostile, name: str) -> tuple[dict[str, str], bytes]:
    body = message(f"say {name}")
    head = signed(case.get("secret") or SECRET, name, int(time.time()) - case.get("age", 0), body)
    head = {key: value for key, value in (head | case.get("head", {})).items() if value}
    return head, case.get("body", "").encode() or body


def heard(model: StrictModel, text: str) -> int:
    """How many requests are about `text`."""
    last = [json.dumps(seen.body["messages"][-1]) for seen in model.requests]
    return len([said for said in last if text in said])


async def test_no_call_is_believed_without_proof_nor_twice(tmp_path: Path) -> None:
    async with world(tmp_path, dmPolicy="open", allowFrom=["*"]) as here:
        found: dict[str, str] = {}
        for number, case in enumerate(of("webhook")):
            name = f"case-{number}-"
            head, body = call(case, name)
            said = [(await here.post(head, body))[0] for _ in range(case.get("times", 1))]
            if not case.get("heard") and set(said) - {400, 401}:
                found[case.id] = f"it got {said}"
            if case.get("heard"):
                await here.until(lambda: heard(here.model, name))  # noqa: B023 - waited for here
        assert await here.say("the last one") == 200  # the control
        await here.until(lambda: heard(here.model, "the last one"))
        for number, case in enumerate(of("webhook")):
            if (times := heard(here.model, f"case-{number}-")) != case.get("heard", 0):
                found[case.id] = f"it was heard {times} times"
        assert not heard(here.model, "changed")
        assert not found, json.dumps(found, indent=1)
