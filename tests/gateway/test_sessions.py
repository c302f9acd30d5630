"""`sessions.*` over a real socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.house import Guest, Refused
from tests.gateway.standing import Standing, standing
from tests.gateway.test_chat import KEY, final, message


async def say(guest: Guest, words: str, key: str, session: str = KEY) -> None:
    await guest.call("chat.send", message(f"say {words}", key, session))
    await final(guest, key)


async def test_the_list_is_newest_first_and_paged(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        for name in ("apple", "berry", "cherry"):
            await say(guest, name, name, f"agent:main:{name}")
        page = await guest.call("sessions.list", {"limit": 2, "includeLastMessage": True})
        assert [row["key"] for row in page["sessions"]] == ["agent:main:cherry", "agent:main:berry"]
        assert (page["count"], page["totalCount"], page["hasMore"], page["nextOffset"]) == (2, 3, True, 2)
        assert page["defaults"]["model"] == "fake"
        row = page["sessions"][0]
        assert (row["derivedTitle"], row["lastMessagePreview"], row["totalTokens"]) == ("say cherry", "cherry", 105)
        rest = await guest.call("sessions.list", {"limit": 2, "offset": 2})
        assert [row["key"] for row in rest["sessions"]] == ["agent:main:apple"]
        assert (rest["hasMore"], rest["nextOffset"]) == (False, None)
        found = await guest.call("sessions.list", {"search": "say berry"})
        assert [row["key"] for row in found["sessions"]] == ["agent:main:berry"]


async def test_a_session_is_described_and_found_by_any_of_its_names(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        assert await guest.call("sessions.describe", {"key": KEY}) == {"session": None}
        await say(guest, "hi", "k1")
        await guest.call("sessions.patch", {"key": KEY, "label": "Taxes"})
        row = (await guest.call("sessions.describe", {"key": "T"}))["session"]
        assert (row["key"], row["label"], row["displayName"]) == (KEY, "Taxes", "Taxes")
        for asked in (
            {"key": KEY},
            {"label": "Taxes"},
            {"sessionId": row["sessionId"]},
            {"shortId": row["sessionId"][:8]},
        ):
            found = await guest.call("sessions.resolve", asked)
            assert (found["ok"], found["key"], found["agentId"]) == (True, KEY, "main")
        assert await guest.call("sessions.resolve", {"label": "nobody", "allowMissing": True}) == {"ok": False}
        for bad in ({"label": "nobody"}, {}):
            with pytest.raises(Refused):
                await guest.call("sessions.resolve", bad)


async def test_settings_are_kept_checked_and_told(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("sessions.subscribe", {})
        done = await guest.call(
            "sessions.patch", {"key": KEY, "verboseLevel": "full", "model": "fake", "unread": False}
        )
        assert (done["ok"], done["entry"]["verboseLevel"]) == (True, "full")
        assert done["resolved"]["model"] == "fake"
        told = await guest.next(lambda f: f.get("event") == "sessions.changed" and f["payload"]["reason"] == "patch")
        assert told["payload"]["session"]["verboseLevel"] == "full"
        cleared = await guest.call("sessions.patch", {"key": KEY, "verboseLevel": None, "model": None})
        assert "verboseLevel" not in cleared["entry"]
        bad: list[tuple[dict[str, Any], str]] = [
            ({"verboseLevel": "loud"}, "verboseLevel"),
            ({"model": "nope"}, "no model"),
            ({"permissionMode": "read-only"}, "nothing this gateway can set"),
            ({"expectedSessionId": "other"}, "begun anew"),
        ]
        for change, words in bad:
            with pytest.raises(Refused, match=words):
                await guest.call("sessions.patch", {"key": KEY, **change})


async def test_a_label_names_one_session(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("sessions.patch", {"key": "a", "label": "One"})
        with pytest.raises(Refused, match="already in use"):
            await guest.call("sessions.patch", {"key": "b", "label": "One"})


async def test_a_session_is_made_with_its_first_words(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("sessions.subscribe", {})
        asked = {"label": "New", "thinkingLevel": "low", "message": "say first", "idempotencyKey": "n1"}
        made = await guest.call("sessions.create", asked)
        assert made["key"].startswith("agent:main:dashboard:")
        assert (made["runStarted"], made["runId"]) == (True, "n1")
        assert (await final(guest, "n1"))["state"] == "final"
        again = await guest.call("sessions.create", asked)
        assert again["key"] == made["key"]
        assert len(gateway.acting.seen) == 1
        row = (await guest.call("sessions.describe", {"key": made["key"]}))["session"]
        assert (row["label"], row["thinkingLevel"]) == ("New", "low")
        plain = await guest.call("sessions.create", {"key": "mine", "parentSessionKey": KEY})
        assert (plain["key"], plain["runStarted"]) == ("agent:main:mine", False)
        with pytest.raises(Refused, match="no model"):
            await guest.call("sessions.create", {"model": "nope"})


async def test_a_refused_first_message_leaves_the_session(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        bad = {"mimeType": "text/x", "content": "aGk="}
        made = await guest.call("sessions.create", {"key": "m", "message": "x", "attachments": [bad]})
        assert made["runStarted"] is False
        assert "cannot be attached" in made["runError"]["message"]


async def test_beginning_anew_stops_what_runs_and_keeps_the_past(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await say(guest, "old", "k1")
        before = (await guest.call("sessions.describe", {"key": KEY}))["session"]["sessionId"]
        await guest.call("chat.send", message("wait", "k2"))
        fresh = await guest.call("sessions.reset", {"key": KEY, "reason": "new"})
        assert (await final(guest, "k2"))["state"] == "aborted"
        assert fresh["entry"]["sessionId"] != before
        assert (await guest.call("chat.history", {"sessionKey": KEY}))["messages"] == []
        assert (tmp_path / "agents" / "main" / "sessions" / f"{before}.jsonl").exists()


async def test_a_session_can_be_deleted_but_not_the_main_one(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("sessions.subscribe", {})
        await say(guest, "hi", "k1")
        gone = await guest.call("sessions.delete", {"key": KEY})
        assert (gone["deleted"], len(gone["archived"])) == (True, 1)
        assert Path(gone["archived"][0]).exists()
        await guest.next(lambda f: f.get("event") == "sessions.changed" and f["payload"].get("reason") == "delete")
        assert (await guest.call("sessions.delete", {"key": KEY}))["deleted"] is False
        with pytest.raises(Refused, match="main session"):
            await guest.call("sessions.delete", {"key": "main"})


async def test_a_fork_gives_back_the_words_to_be_said_anew(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await say(guest, "one", "k1")
        await say(guest, "two", "k2")
        messages = (await guest.call("chat.history", {"sessionKey": KEY}))["messages"]
        ids = [m["__openclaw"]["id"] for m in messages]
        forked = await guest.call("sessions.fork", {"sessionKey": KEY, "entryId": ids[2]})
        assert forked["editorText"] == "say two"
        copied = await guest.call("chat.history", {"sessionKey": forked["sessionKey"]})
        assert [m["__openclaw"]["id"] for m in copied["messages"]] == ids[:2]
        whole = await guest.call("sessions.fork", {"sessionKey": KEY, "entryId": ids[3]})
        assert "editorText" not in whole
        with pytest.raises(Refused, match="no entry"):
            await guest.call("sessions.fork", {"sessionKey": KEY, "entryId": "nope"})


async def test_words_from_outside_wait_or_interrupt(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        with pytest.raises(Refused, match="session not found"):
            await guest.call("sessions.send", {"key": KEY, "message": "x"})
        await guest.call("chat.send", message("wait", "k1"))
        steered = await guest.call("sessions.steer", {"key": KEY, "message": "say now", "idempotencyKey": "k2"})
        assert steered["interruptedActiveRun"] is True
        assert (await final(guest, "k1"))["state"] == "aborted"
        assert (await final(guest, "k2"))["state"] == "final"
        with pytest.raises(Refused, match="message or attachment"):
            await guest.call("sessions.send", {"key": KEY, "message": " "})


async def test_a_run_is_stopped_by_its_session_or_by_itself(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("chat.send", message("wait", "k1"))
        stopped = await guest.call("sessions.abort", {"runId": "k1"})
        assert stopped == {"ok": True, "abortedRunId": "k1", "status": "aborted"}
        nothing = {"ok": True, "abortedRunId": None, "status": "no-active-run"}
        assert await guest.call("sessions.abort", {"key": KEY}) == nothing
        assert await guest.call("sessions.abort", {"runId": "nobody"}) == nothing
        with pytest.raises(Refused, match="key or runId"):
            await guest.call("sessions.abort", {})


async def test_sessions_are_looked_into(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await say(guest, "the needle here", "k1")
        found = await guest.call("sessions.search", {"query": "needle", "sessionKeys": [KEY]})
        assert {hit["sessionKey"] for hit in found["results"]} == {KEY}
        assert (await guest.call("sessions.search", {"query": "needle", "sessionKeys": ["x"]}))["results"] == []
        shown = await guest.call("sessions.preview", {"keys": [KEY, "agent:main:none"]})
        assert [(p["status"], len(p["items"])) for p in shown["previews"]] == [("ok", 2), ("missing", 0)]
        assert len((await guest.call("sessions.get", {"key": KEY}))["messages"]) == 2


async def test_subscriptions_begin_and_end(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        assert await guest.call("sessions.subscribe", {}) == {"subscribed": True}
        listed = await guest.call("sessions.subscribe", {"limit": 5})
        assert listed["list"]["sessions"] == []
        assert await guest.call("sessions.unsubscribe", {}) == {"subscribed": False}
        one = await guest.call("sessions.messages.subscribe", {"key": KEY, "includeApprovals": True})
        assert (one["key"], one["approvalReplay"]["approvals"]) == (KEY, [])
        await say(guest, "hi", "k1")
        told = [f["event"] for f in guest.heard if f.get("event") in ("session.message", "sessions.changed")]
        assert told == ["session.message", "session.message"]
        assert await guest.call("sessions.messages.unsubscribe", {"key": KEY}) == {"subscribed": False, "key": KEY}
        assert await guest.call("sessions.viewers.set", {"sessionKeys": ["main"]}) == {
            "sessionKeys": ["agent:main:main"]
        }
        assert await guest.call("sessions.observer.visibility", {"visible": True}) == {"ok": True}


async def counted(gateway: Standing, guest: Guest, turns: int) -> int:
    """`sessions.changed` events of some turns."""
    for number in range(turns):
        await say(guest, "hi", f"n{number}", f"agent:main:s{number}")
    await guest.call("sessions.list", {})
    return sum(f.get("event") == "sessions.changed" for f in guest.heard)


async def test_a_turn_changes_the_list_a_few_times_and_brings_the_row(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await guest.call("sessions.subscribe", {})
        assert await counted(gateway, guest, 10) <= 40
        changes = [f["payload"] for f in guest.heard if f.get("event") == "sessions.changed"]
        assert all(change["session"]["key"] == change["sessionKey"] for change in changes)


async def test_who_did_not_subscribe_is_sent_no_rows(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        assert await counted(gateway, guest, 3) == 0
