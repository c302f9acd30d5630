"""An owner is asked by the running program before a command runs: in his chat, over the wire, at the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from garra.testing.telegram import TelegramServer
from tests.e2e.outside import until
from tests.e2e.program import Program
from tests.e2e.resident import Client, StrictModel, resident, strict_model, words

pytestmark = pytest.mark.e2e

ASK = {"tools": {"exec": {"host": "gateway", "security": "full", "ask": "always"}}}
OWNER, GUEST = 1001, 2002
APPROVER = {
    "scopes": ["operator.admin", "operator.read", "operator.write", "operator.approvals"],
    "caps": ["exec-approvals"],
}


def asking(telegram: TelegramServer) -> dict[str, Any]:
    bot = {
        "botToken": telegram.token,
        "apiRoot": telegram.url,
        "allowFrom": [OWNER, GUEST],
        "groups": {"-500": {"requireMention": False, "tools": {"allow": ["exec"]}}},
    }
    chats = {"channels": {"telegram": bot}, "session": {"dmScope": "per-channel-peer"}}
    return {**ASK, **chats, "commands": {"ownerAllowFrom": [f"telegram:{OWNER}"]}}


def card(telegram: TelegramServer, chat: Any) -> Mapping[str, Any] | None:
    """The newest message of a chat with buttons, as it was sent."""
    calls = [call.params for call in telegram.asked("sendMessage")]
    found = [each for each in calls if each.get("reply_markup") and str(each["chat_id"]) == str(chat)]
    return found[-1] if found else None


def press(telegram: TelegramServer, shown: Mapping[str, Any], chat: int, user: int, label: str) -> None:
    rows = shown["reply_markup"]
    rows = (json.loads(rows) if isinstance(rows, str) else rows)["inline_keyboard"]
    data = next(each["callback_data"] for row in rows for each in row if each["text"] == label)
    who = {"id": user, "is_bot": False, "first_name": f"User{user}"}
    kind = "private" if chat > 0 else "supergroup"
    said = {"message_id": 77, "date": 1_760_000_000, "chat": {"id": chat, "type": kind}}
    name = f"press-{len(telegram.calls)}-{user}"
    telegram.push({"callback_query": {"id": name, "from": who, "message": said, "data": data, "chat_instance": "1"}})


def results(model: StrictModel) -> list[str]:
    said = model.requests[-1].body["messages"]
    return [str(message["content"]) for message in said if message["role"] == "tool"]


async def waiting(client: Client) -> dict[str, Any]:
    """The question that waits."""
    async with asyncio.timeout(10):
        while not (found := await client.call("exec.approval.list")):  # noqa: ASYNC110 - it asks over the wire
            await asyncio.sleep(0.02)
    row: dict[str, Any] = found[0]  # type: ignore[index]  # this method's payload is a list
    return row


@pytest.mark.req("TOOL-13")
async def test_the_owner_presses_a_button_and_nobody_else_can(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    async with (
        strict_model() as model,
        TelegramServer() as telegram,
        resident(tmp_path, model.url, asking(telegram)),
    ):
        model.then(Use("exec", {"command": f"touch {mark}"}), Say("all done"))
        group = {"chat": {"id": -500, "type": "supergroup", "title": "us"}}
        telegram.say(OWNER, "make it", **group)
        await until(lambda: card(telegram, -500))
        shown = card(telegram, -500)
        assert shown is not None
        assert f"touch {mark}" in shown["text"]
        assert shown["text"].rstrip().endswith(" allow-once")

        press(telegram, shown, -500, GUEST, "Allow once")
        await until(lambda: any("Only an owner" in text for text in telegram.shown(-500)))
        assert not mark.exists()

        press(telegram, shown, -500, OWNER, "Allow once")
        await until(lambda: any("all done" in text for text in telegram.shown(-500)))
        assert mark.exists()
        press(telegram, shown, -500, OWNER, "Deny")
        await until(lambda: any("handled already" in text for text in telegram.shown(-500)))
        press(telegram, shown, -500, OWNER, "Allow once")
        await until(lambda: sum("andled already" in text for text in telegram.shown(-500)) == 2)
        model.then(Say("still here"))
        telegram.say(OWNER, "and now?", **group)
        await until(lambda: any("still here" in text for text in telegram.shown(-500)))


async def test_the_question_outlives_a_crash_and_is_answered_at_the_command_line(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    call = {"command": f"touch {mark}"}
    async with (
        strict_model() as model,
        TelegramServer() as telegram,
        resident(tmp_path, model.url, asking(telegram)) as program,
    ):
        model.then(Use("exec", call))
        telegram.say(OWNER, "make it")
        await until(lambda: card(telegram, OWNER))
        program.kill()
        await program.gone()

        code, out, _ = await program.run("approvals", "list", "--json")
        (left,) = json.loads(out)["approvals"]
        assert (code, left["summary"]) == (0, f"touch {mark}")
        code, _, err = await program.run("approvals", "approve", left["id"], env={"GARRA_SHELL": "exec"})
        assert (code, "own questions" in err) == (1, True)
        code, out, err = await program.run("approvals", "approve", left["id"][:8])
        assert code == 0, err
        assert f"touch {mark}" in out
        assert not mark.exists()

        model.then(Use("exec", call, id="c2"), Use("exec", call, id="c3"), Say("all done"))
        cards = len(telegram.asked("sendMessage"))
        await program.start()
        await until(mark.exists, 15)
        assert any("interrupted" in text for text in results(model)), "it is not run again by itself"
        await until(lambda: len(telegram.asked("sendMessage")) > cards)
        telegram.say(OWNER, "/deny")  # the yes was worth one doing: the next is asked again
        await until(lambda: any("all done" in text for text in telegram.shown(OWNER)), 15)
        assert "said no" in results(model)[-1]


async def test_where_nobody_can_be_asked_nothing_waits_and_nothing_runs(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    async with strict_model() as model, resident(tmp_path, model.url, ASK) as program, program.client() as client:
        model.then(Use("exec", {"command": f"touch {mark}"}), Say("done"))
        assert words(await client.say("make it")) == "done"
        assert "nobody can be asked" in results(model)[-1]
        assert not mark.exists()


async def test_an_operator_s_client_sees_the_question_and_its_end(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    async with (
        strict_model() as model,
        resident(tmp_path, model.url, ASK) as program,
        program.client() as client,
        program.client(**APPROVER) as person,
    ):
        key = "agent:main:main"
        replay = await person.call("sessions.messages.subscribe", {"key": key, "includeApprovals": True})
        assert replay["approvalReplay"]["approvals"] == []
        model.then(Use("exec", {"command": f"touch {mark}"}), Say("done"))
        run = await client.send("make it")
        asked = await waiting(person)
        replay = await person.call("sessions.messages.subscribe", {"key": key, "includeApprovals": True})
        assert [each["id"] for each in replay["approvalReplay"]["approvals"]] == [asked["id"]]
        with pytest.raises(RuntimeError, match="APPROVAL_NOT_FOUND"):
            await person.call("exec.approval.resolve", {"id": "nothing-of-it", "decision": "deny"})
        with pytest.raises(RuntimeError, match="APPROVAL_ALLOW_ALWAYS_UNAVAILABLE"):
            await person.call("exec.approval.resolve", {"id": asked["id"], "decision": "allow-always"})
        async with program.client(scopes=["operator.read", "operator.write"]) as reader:
            with pytest.raises(RuntimeError, match="MISSING_SCOPE"):
                await reader.call("exec.approval.resolve", {"id": asked["id"], "decision": "allow-once"})
        ended = asyncio.create_task(person.call("exec.approval.waitDecision", {"id": asked["id"]}))
        await asyncio.sleep(0.05)
        async with program.client(**APPROVER) as other:
            await other.call("approval.resolve", {"id": asked["id"], "kind": "exec", "decision": "allow-once"})
        assert (await ended)["decision"] == "allow-once"
        await client.until(run)
        assert mark.exists()
        names = [event["event"] for event in person.events]
        assert names.count("session.approval") == 2
        assert names.index("exec.approval.requested") < names.index("exec.approval.resolved")
        phases = [
            event["payload"]["data"].get("phase")
            for event in client.events
            if event["event"] == "agent" and event["payload"]["stream"] == "lifecycle"
        ]
        assert phases.index("waiting-approval") < phases.index("approval-resolved") < phases.index("end")
        past = await person.call("approval.history")
        assert [(each["status"], each["resolver"]["id"]) for each in past["items"]] == [("allowed", "gateway-client")]


def test_the_document_is_set_and_checked_without_a_gateway(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.configure()
    assert program.run("approvals", "get").json == {"version": 1, "defaults": {}, "agents": {}}
    file = tmp_path / "approvals.json"
    file.write_text('{version: 1, defaults: {security: "allowlist"}, agents: {main: {allowlist: [{pattern: "ls"}]}}}')
    assert program.run("approvals", "set", "--file", str(file)).code == 0
    assert (
        program.run("approvals", "allowlist", "add", "/usr/bin/rg").out
        == "/usr/bin/rg is on the list of * (every agent) now.\n"
    )
    assert (
        "no agent nobody; there is: main" in program.run("approvals", "allowlist", "add", "rg", "--agent", "nobody").err
    )
    assert "a program alone, here rm" in program.run("approvals", "allowlist", "add", "rm -rf").err
    listed = program.run("approvals", "allowlist").out
    assert "/usr/bin/rg" in listed
    assert "main" in listed
    kept = program.run("approvals", "allowlist", "remove", "ls")
    assert kept.code == 1
    assert "It still stands in that of main: --agent main" in kept.out
    found = program.run("approvals", "get", "--json").json
    assert found["file"]["agents"]["*"]["allowlist"] == [{"pattern": "/usr/bin/rg"}]
    assert found["resolvedDefaults"]["security"] == "allowlist"
    file.write_text(json.dumps({"defaults": {"ask": "perhaps"}, "agents": {"main": {"allowlist": [{}]}}}))
    refused = program.run("approvals", "set", "--file", str(file))
    assert refused.code == 1
    assert len(refused.err.splitlines()) == 2
    assert "defaults.ask: 'perhaps'" in refused.err
    file.write_bytes(b"\xff\xfe")
    assert program.run("approvals", "set", "--file", str(file)).err.endswith("is not UTF-8 text (byte 0)\n")
    assert program.run("approvals", "get", "--json").json["hash"] == found["hash"]
    assert program.run("approvals").out == "Nothing waits for an answer.\n"
    assert program.run("approvals", "deny", "12345678").code == 1
