"""Ids that are forged or used again, answers that race each other, and what a restart makes of them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import until
from tests.e2e.resident import Client, resident, strict_model
from tests.e2e.test_approvals import APPROVER, ASK, OWNER, asking, card, results, waiting

pytestmark = pytest.mark.e2e


async def answered(client: Client, name: str, decision: str) -> str:
    """What became of an answer: `applied`, `again`, or why it was refused."""
    try:
        said = await client.call("approval.resolve", {"id": name, "kind": "exec", "decision": decision})
    except RuntimeError as error:
        return str(error)
    return "applied" if said["applied"] else "again"


@pytest.mark.req("TOOL-13")
async def test_one_of_many_answers_counts_and_none_counts_again(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    call = {"command": f"echo x >> {mark}"}
    async with (
        strict_model() as model,
        resident(tmp_path, model.url, ASK) as program,
        program.client() as client,
        AsyncExitStack() as stack,
    ):
        many = [await stack.enter_async_context(program.client(**APPROVER)) for _ in range(6)]
        one = many[0]
        model.then(Use("exec", call), Say("done"))
        run = await client.send("make it")
        name = str((await waiting(one))["id"])
        ways = [(each, ("deny", "allow-once")[at % 2]) for at, each in enumerate(many)]
        said = await asyncio.gather(*(answered(each, name, word) for each, word in ways))
        assert said.count("applied") == 1
        assert [each for each in said if each not in ("applied", "again") and "handled already" not in each] == []
        await client.until(run)
        made = mark.read_text() if mark.exists() else ""
        assert made == ("x\n" if ways[said.index("applied")][1] == "allow-once" else "")
        before = made
        for _ in range(2):
            model.then(Use("exec", call, id="c2"), Say("done"))
            run = await client.send("once more")
            fresh = str((await waiting(one))["id"])
            assert fresh != name
            for forged in (name, name[:8], name.upper(), f"{name} ", fresh[:3], "0000", "%", "../x", "", "*"):
                assert "applied" not in await answered(one, forged, "allow-once")
            await one.call("exec.approval.resolve", {"id": fresh, "decision": "deny"})
            await client.until(run)
            assert (mark.read_text() if mark.exists() else "") == before
        for each in many:
            await each.call("health")  # what came meanwhile is read, so that it can close at once


async def test_an_old_yes_is_worth_nothing_after_a_restart(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    call = {"command": f"echo x >> {mark}"}
    async with strict_model() as model, resident(tmp_path, model.url, ASK) as program:
        async with program.client() as client, program.client(**APPROVER) as one:
            model.then(Use("exec", call), Say("done"))
            run = await client.send("make it")
            name = str((await waiting(one))["id"])
            assert await answered(one, name, "allow-once") == "applied"
            await client.until(run)
        program.kill()
        await program.gone()
        await program.start()
        async with program.client() as client, program.client(**APPROVER) as one:
            assert await answered(one, name, "allow-once") == "again"
            model.then(Use("exec", call, id="c2"), Say("done"))
            run = await client.send("once more")
            fresh = str((await waiting(one))["id"])
            assert await answered(one, name, "allow-once") == "again"
            assert (await waiting(one))["id"] == fresh
            assert mark.read_text() == "x\n"
            assert await answered(one, fresh, "deny") == "applied"
            await client.until(run)
            assert mark.read_text() == "x\n"


async def test_a_program_s_own_id_is_not_taken_for_another_question(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    async with (
        strict_model() as model,
        TelegramServer() as telegram,
        resident(tmp_path, model.url, targeted(telegram)) as program,
        program.client(**APPROVER) as other,
    ):
        model.then(Use("exec", {"command": f"touch {mark}"}), Say("all done"))
        telegram.say(OWNER, "make it")
        await until(lambda: card(telegram, OWNER), 30)
        name = str((await waiting(other))["id"])
        for forged in (name[:8], name[:4], f"{name[:8]}-1", name):
            asked = await other.call("exec.approval.request", {"id": forged, "command": "rm -rf /", "timeoutMs": 200})
            assert asked["decision"] is None or asked["decision"] == "deny"
            assert "there is a question" in str(asked["reason"])
        cards = len(telegram.asked("sendMessage"))
        for odd in ("my:program:" + "x" * 50, "zzzz-1"):  # no chat could answer it, and none is shown it
            await other.call("exec.approval.request", {"id": odd, "command": "true", "timeoutMs": 200})
        assert len(telegram.asked("sendMessage")) == cards
        telegram.say(OWNER, f"/approve {name[:8]}")
        await until(mark.exists, 30)
        await until(lambda: any("all done" in text for text in telegram.shown(OWNER)), 30)
        assert "touch" in str(model.requests[-1].body)
        assert results(model)


def targeted(telegram: TelegramServer) -> dict[str, Any]:
    target = {"channel": "telegram", "to": str(OWNER)}
    return {**asking(telegram), "approvals": {"exec": {"enabled": True, "mode": "targets", "targets": [target]}}}
