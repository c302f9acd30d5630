"""`agent` and `agent.wait`: one turn with two answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.house import Guest, Refused
from tests.gateway.standing import standing

ASK: dict[str, Any] = {"message": "say done", "idempotencyKey": "a1", "agentId": "main"}


async def both(guest: Guest, params: dict[str, Any]) -> list[dict[str, Any]]:
    """Every answer to one `agent` request."""
    asked = await guest.ask("agent", params)
    answers = [await guest.answer(asked)]
    while answers[-1].get("payload", {}).get("status") == "accepted":
        answers.append(await guest.answer(asked))
    return answers


@pytest.mark.req("GW-13")
async def test_a_turn_is_accepted_then_answered_and_repeated_for_nothing(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        accepted, done = await both(guest, ASK)
        assert accepted["payload"]["runId"] == "a1"
        payload = done["payload"]
        assert (payload["status"], payload["summary"]) == ("ok", "completed")
        assert payload["result"]["payloads"] == [{"text": "done", "mediaUrl": None}]
        assert [f["payload"] for f in await both(guest, ASK)] == [payload]
        assert len(gateway.acting.seen) == 1
        with pytest.raises(Refused) as caught:
            await guest.call("agent", {**ASK, "message": "other"})
        assert caught.value.error["details"]["reason"] == "agent-request-conflict"
        statuses = [f for f in guest.heard if f.get("event") == "chat" and f["payload"]["state"] == "status"]
        assert statuses == []


async def test_a_repeat_during_the_run_gets_the_same_end(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        ask = {**ASK, "message": "go say late"}
        first, second = await guest.ask("agent", ask), await guest.ask("agent", ask)
        gateway.acting.release.set()
        ends: dict[str, Any] = {}
        while len(ends) < 2:
            frame = await guest.next(lambda f: f.get("id") in (first, second))
            if frame["payload"]["status"] != "accepted":
                ends[frame["id"]] = frame["payload"]["result"]["payloads"]
        assert ends[first] == ends[second] == [{"text": "late", "mediaUrl": None}]
        assert len(gateway.acting.seen) == 1


@pytest.mark.req("GW-13")
async def test_an_end_is_known_after_a_restart(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await both(guest, ASK)
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        (answer,) = await both(guest, ASK)
        assert answer["payload"]["result"]["payloads"] == [{"text": "done", "mediaUrl": None}]
        assert gateway.acting.seen == []


async def test_a_run_that_a_restart_cut_says_so(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.answer(await guest.ask("agent", {**ASK, "message": "wait"}))
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        with pytest.raises(Refused, match="interrupted"):
            await guest.call("agent", {**ASK, "message": "wait"})


async def test_a_failure_carries_payload_and_error(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        _, bad = await both(guest, {**ASK, "message": "fail"})
        assert bad["ok"] is False
        assert bad["payload"]["status"] == "error"
        assert bad["error"]["code"] == "UNAVAILABLE"
        assert bad["error"]["message"] == "The provider refused the key."


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"agentId": "nobody"}, "unknown agent"),
        ({"thinking": "very"}, "unknown thinking level"),
        ({"deliver": True}, "no channel"),
        ({"timeout": -1}, "at /timeout: must be >= 0"),
        ({"message": ""}, "at /message"),
    ],
)
async def test_what_cannot_be_run_is_told_at_once(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        with pytest.raises(Refused, match=words):
            await guest.call("agent", {**ASK, **more})
        assert gateway.acting.seen == []


async def test_what_is_asked_reaches_the_turn(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        more = {"timeout": 30, "thinking": "high", "model": "fake", "extraSystemPrompt": "be brief", "label": "Job"}
        await both(guest, {**ASK, "sessionKey": "Job 1", **more})
        turn = gateway.acting.seen[0]
        assert (turn.session_key, turn.timeout_s, turn.thinking) == ("agent:main:job 1", 30.0, "high")
        assert (turn.model, turn.extra_system) == ("fake", "be brief")
        row = (await guest.call("sessions.describe", {"key": turn.session_key}))["session"]
        assert row["label"] == "Job"
        await both(guest, {**ASK, "idempotencyKey": "a2", "sessionId": row["sessionId"]})
        await both(guest, {**ASK, "idempotencyKey": "a3", "sessionId": "fresh"})
        keys = [turn.session_key for turn in gateway.acting.seen[1:]]
        assert keys == ["agent:main:job 1", "agent:main:explicit:fresh"]


async def test_a_run_can_be_waited_for(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        late = await guest.ask("agent.wait", {"runId": "a1", "timeoutMs": 5000})
        await asyncio.sleep(0)
        await guest.ask("agent", {**ASK, "message": "go say done"})
        short = await guest.call("agent.wait", {"runId": "nobody", "timeoutMs": 0})
        assert short == {"runId": "nobody", "status": "timeout"}
        gateway.acting.release.set()
        answer = (await guest.answer(late))["payload"]
        assert (answer["status"], answer["terminalReply"]["text"]) == ("ok", "done")
        await both(guest, {**ASK, "idempotencyKey": "a2", "message": "fail"})
        failed = await guest.call("agent.wait", {"runId": "a2"})
        assert (failed["status"], failed["error"]) == ("error", "The provider refused the key.")


async def test_waiting_ends_when_its_time_is_over(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.answer(await guest.ask("agent", {**ASK, "message": "wait"}))
        assert (await guest.call("agent.wait", {"runId": "a1", "timeoutMs": 1}))["status"] == "timeout"


async def test_words_behind_new_are_the_first_of_a_new_conversation(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        old = (await both(guest, ASK))[-1]["payload"]["result"]["meta"]["agentMeta"]["sessionId"]
        _, done = await both(guest, {**ASK, "message": "/new say hello", "idempotencyKey": "a2"})
        assert done["payload"]["result"]["payloads"] == [{"text": "hello", "mediaUrl": None}]
        assert done["payload"]["result"]["meta"]["agentMeta"]["sessionId"] != old
        assert [turn.text for turn in gateway.acting.seen] == ["say done", "say hello"]


async def test_a_command_is_answered_at_once_and_asks_no_model(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        accepted, done = await both(guest, {**ASK, "message": "/whoami"})
        assert accepted["payload"]["status"] == "accepted"
        result = done["payload"]["result"]
        assert result["payloads"][0]["text"].startswith("You are an operator of this gateway")
        assert result["meta"]["agentMeta"]["sessionId"]
        await both(guest, {**ASK, "message": "/whoami", "idempotencyKey": "a2", "modelRun": True})
        assert [turn.text for turn in gateway.acting.seen] == ["/whoami"]
