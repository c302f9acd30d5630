"""Approvals over the wire, on a real socket: what waits, who is told, answering, asking, and the document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.app.approvals_served import serve
from garra.core.approvals import Source
from garra.gateway.methods import approvals as methods
from tests.domains.exec.asking import Desk, desk, question
from tests.gateway.house import Refused
from tests.gateway.standing import Standing, standing

EXEC = {"caps": ("exec-approvals",)}
BOTH = {"caps": ("approvals",)}
MAIN = "agent:main:main"


@dataclass
class House:
    """A gateway whose questions a test asks."""

    gateway: Standing
    desk: Desk

    def guest(self, **asked: Any) -> Any:
        return self.gateway.guest(**asked)


@asynccontextmanager
async def house(folder: Path) -> AsyncIterator[House]:
    (folder / "desk").mkdir()
    source = Source("telegram", "default", "7", sender="7")
    async with standing(folder) as gateway, desk(folder / "desk", source=source) as d:
        d.approvals.routes.clear()
        host = gateway.host
        end = serve(d.approvals, host, host.runs)  # type: ignore[arg-type]  # the real table of runs
        yield House(gateway, d)
        end()


async def test_a_question_has_the_shape_that_clients_know(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.guest(**EXEC) as person:
        await person.call("sessions.messages.subscribe", {"key": MAIN, "includeApprovals": True})
        waiting, asked = await h.desk.asked(why=("it is new",), cwd="/w", argv=("/usr/bin/touch", "x"), host="gateway")
        told = (await person.event("exec.approval.requested"))["payload"]
        assert told["approvalKind"] == "exec"
        assert told["expiresAtMs"] - told["createdAtMs"] == 1_800_000
        request = told["request"]
        assert (request["command"], request["cwd"], request["host"]) == ("touch x", "/w", "gateway")
        assert (request["allowedDecisions"], request["unavailableDecisions"]) == (
            ["allow-once", "deny"],
            ["allow-always"],
        )
        assert (request["agentId"], request["sessionKey"], request["runId"], request["toolCallId"]) == (
            "main", MAIN, "r", "call-1",
        )  # fmt: skip
        assert (request["turnSourceChannel"], request["turnSourceTo"]) == ("telegram", "7")
        assert request["warningText"] == "it is new"
        pending = (await person.event("session.approval"))["payload"]
        assert (pending["phase"], pending["approval"]["status"]) == ("pending", "pending")
        assert pending["approval"]["presentation"]["commandText"] == "touch x"
        assert pending["approval"]["urlPath"] == f"/approve/{asked.id}"

        assert [row["id"] for row in await person.call("exec.approval.list", {})] == [asked.id]
        assert await person.call("plugin.approval.list", {}) == []
        assert await person.call("openclaw.approval.list", {}) == []
        assert (await person.call("exec.approval.get", {"id": asked.id[:8]}))["subject"] == "touch x"

        assert await person.call("exec.approval.resolve", {"id": asked.id, "decision": "allow-once"}) == {"ok": True}
        assert await person.call("exec.approval.resolve", {"id": asked.id, "decision": "allow-once"}) == {"ok": True}
        for decision, reason in (("deny", "APPROVAL_ALREADY_RESOLVED"), ("perhaps", "")):
            with pytest.raises(Refused) as refused:
                await person.call("exec.approval.resolve", {"id": asked.id, "decision": decision})
            assert (refused.value.error.get("details") or {}).get("reason", "") == reason
        ended = (await person.event("exec.approval.resolved"))["payload"]
        assert (ended["id"], ended["decision"], ended["resolvedBy"]) == (asked.id, "allow-once", "gateway-client")
        terminal = await person.next(
            lambda f: f.get("event") == "session.approval" and f["payload"]["phase"] == "terminal"
        )
        assert terminal["payload"]["approval"]["decision"] == "allow-once"
        assert (await waiting).by == "gateway-client"
        applied = await person.call("approval.resolve", {"id": asked.id, "kind": "exec", "decision": "allow-once"})
        assert (applied["applied"], applied["approval"]["reason"]) == (False, "user")
        page = await person.call("approval.history", {"limit": 1})
        assert page["items"][0]["resolver"] == {"kind": "runtime", "id": "gateway-client"}
        assert (await person.call("approval.history", {"cursor": page["nextCursor"]}))["items"] == []
        assert (await person.call("approval.get", {"id": asked.id}))["approval"]["status"] == "allowed"


async def test_who_may_not_answer_hears_nothing_and_cannot(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.guest(**EXEC) as person, h.guest(scopes=("operator.write",)) as other:
        _, asked = await h.desk.asked()
        await person.event("exec.approval.requested")
        with pytest.raises(Refused, match="missing scope"):
            await other.call("exec.approval.resolve", {"id": asked.id, "decision": "allow-once"})
        for method in ("exec.approval.list", "exec.approvals.get", "exec.approval.grants.list", "approval.history"):
            with pytest.raises(Refused, match="missing scope"):
                await other.call(method, {})
        replay = await other.call("sessions.messages.subscribe", {"key": MAIN, "includeApprovals": True})
        assert replay["approvalReplay"]["approvals"] == []
        assert not [frame for frame in other.heard if "approval" in str(frame.get("event"))]


async def test_only_clients_that_say_so_count_as_somebody_to_ask(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        async with h.guest():
            assert "nobody can be asked" in (await h.desk.approvals.ask(question())).reason
        async with h.guest(**EXEC):
            assert "nobody can be asked" in (await h.desk.approvals.ask(question(kind="tool"))).reason
            await h.desk.asked()


async def test_a_tool_s_question_is_a_plugin_s_card(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.guest(**BOTH) as person:
        always = {
            "choices": ("allow-once", "allow-always", "deny"),
            "remembers": "posts of this chat",
            "covers": "tool:post",
        }
        _, asked = await h.desk.asked(kind="tool", subject="post\n  text: " + "xw" * 300, tool="post", **always)
        told = (await person.event("plugin.approval.requested"))["payload"]["request"]
        assert told["title"] == "post asks for approval"
        assert len(told["description"]) <= 512
        assert told["detail"].startswith("post\n  text: xwx")
        assert told["detail"].endswith("Allow always: posts of this chat")
        assert told["toolName"] == "post"
        assert [row["id"] for row in await person.call("plugin.approval.list", {})] == [asked.id]
        await person.call("plugin.approval.resolve", {"id": asked.id, "decision": "allow-always"})
        (grant,) = (await person.call("exec.approval.grants.list", {}))["grants"]
        assert (grant["covers"], grant["revokedAtMs"]) == ("tool:post", None)
        answer = await person.call("exec.approval.grants.revoke", {"grantId": grant["grantId"]})
        assert answer["outcome"] == "revoked"
        answer = await person.call("exec.approval.grants.revoke", {"grantId": grant["grantId"]})
        assert answer["outcome"] == "already-revoked"


async def test_what_a_card_does_not_hold_is_allowed_only_by_who_showed_it_whole(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.guest(**BOTH) as person:
        waiting, asked = await h.desk.asked(kind="tool", subject="yw" * 10_000, tool="post")
        with pytest.raises(Refused, match="too long"):
            await person.call("plugin.approval.resolve", {"id": asked.id, "decision": "allow-once"})
        whole = await person.call("exec.approval.get", {"id": asked.id})
        assert whole["subject"] == "yw" * 10_000
        await person.call("approval.resolve", {"id": asked.id, "decision": "allow-once", "whole": True})
        assert (await waiting).allowed


async def test_an_operator_s_program_may_ask_too(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.guest(**BOTH) as person, h.guest() as program:
        params = {"id": "mine-1", "command": "ls", "cwd": "/w", "twoPhase": True, "timeoutMs": 60_000}
        number = await program.ask("exec.approval.request", params)
        accepted = (await program.answer(number))["payload"]
        assert (accepted["status"], accepted["id"]) == ("accepted", "mine-1")
        late = await program.ask("exec.approval.waitDecision", {"id": "mine-1"})
        await person.call("exec.approval.resolve", {"id": "mine-1", "decision": "deny"})
        assert (await program.answer(number))["payload"]["decision"] == "deny"
        assert (await program.answer(late))["payload"]["decision"] == "deny"
        card = {"title": "Pay", "description": "3 EUR to Bob", "toolName": "pay"}
        number = await program.ask("plugin.approval.request", card)
        told = (await person.event("plugin.approval.requested"))["payload"]
        assert told["request"]["description"] == "Pay\n3 EUR to Bob"
        await person.call("plugin.approval.resolve", {"id": told["id"], "decision": "allow-once"})
        assert (await program.answer(number))["payload"]["decision"] == "allow-once"


async def test_the_document_is_read_and_set(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.guest() as admin:
        found = await admin.call("exec.approvals.get", {})
        assert found["file"] == {"version": 1, "defaults": {}, "agents": {}}
        document = {"version": 1, "defaults": {"security": "allowlist"}, "agents": {}}
        after = await admin.call("exec.approvals.set", {"file": document, "baseHash": found["hash"]})
        assert (after["file"], after["exists"]) == (document, True)
        with pytest.raises(Refused, match="changed meanwhile"):
            await admin.call("exec.approvals.set", {"file": document, "baseHash": found["hash"]})
        with pytest.raises(Refused, match="none of deny"):
            await admin.call("exec.approvals.set", {"file": {"defaults": {"security": "x"}}})
        for method in ("exec.approvals.node.get", "exec.approvals.node.set"):
            with pytest.raises(Refused, match="no node"):
                await admin.call(method, {"nodeId": "n"})


async def test_an_operator_answers_in_the_chat_itself(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.guest(**EXEC) as person:
        waiting, _ = await h.desk.asked()
        await person.call("chat.send", {"sessionKey": MAIN, "message": "/approve", "idempotencyKey": "k1"})
        said = await person.next(lambda f: f.get("event") == "chat" and f["payload"].get("state") == "final")
        assert "Allowed once: touch x" in str(said["payload"]["message"])
        assert (await asyncio.wait_for(waiting, 5)).allowed


def test_the_cursor_of_a_history_is_ours() -> None:
    with pytest.raises(Exception, match="cursor"):
        methods._cursor("x")
