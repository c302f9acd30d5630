"""Going back in a conversation, changing many at once, and keeping them in order, over a real socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.house import Refused
from tests.gateway.standing import standing
from tests.gateway.test_chat import KEY
from tests.gateway.test_sessions import say


async def test_a_rewind_gives_the_words_back_and_the_old_end_stays_to_be_gone_to(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await say(guest, "one", "k1")
        await say(guest, "two", "k2")
        history = (await guest.call("chat.history", {"sessionKey": KEY}))["messages"]
        ids = [each["__openclaw"]["id"] for each in history]
        back = await guest.call("sessions.rewind", {"sessionKey": KEY, "entryId": ids[2]})
        assert back == {"editorText": "say two"}
        assert len((await guest.call("chat.history", {"sessionKey": KEY}))["messages"]) == 2
        await say(guest, "three", "k3")
        listed = (await guest.call("sessions.branches.list", {"sessionKey": KEY}))["branches"]
        assert [(each["headline"], each["messageCount"], each["active"]) for each in listed] == [
            ("three", 4, True), ("two", 4, False),
        ]  # fmt: skip
        other = listed[1]["leafEntryId"]
        assert await guest.call("sessions.branches.switch", {"sessionKey": KEY, "leafEntryId": other}) == {}
        texts = [str(each) for each in (await guest.call("chat.history", {"sessionKey": KEY}))["messages"]]
        assert "say two" in texts[2]
        for bad in ("nope", ids[0]):
            with pytest.raises(Refused, match="has no branch"):
                await guest.call("sessions.branches.switch", {"sessionKey": KEY, "leafEntryId": bad})
        with pytest.raises(Refused, match="has no entry"):
            await guest.call("sessions.rewind", {"sessionKey": KEY, "entryId": "nope"})
        with pytest.raises(Refused, match="only a person's message"):
            await guest.call("sessions.rewind", {"sessionKey": KEY, "entryId": ids[1]})


async def test_many_are_changed_each_for_itself(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await say(guest, "hi", "k1")
        await say(guest, "hi", "k2", "agent:main:other")
        targets = [{"key": KEY}, {"key": "agent:nobody:x"}, {"key": "agent:main:other", "expectedSessionId": "old"}]
        done = await guest.call("sessions.patchMany", {"targets": targets, "patch": {"pinned": True}})
        assert [each["ok"] for each in done["outcomes"]] == [True, False, False]
        assert "unknown agent" in done["outcomes"][1]["error"]["message"]
        row = (await guest.call("sessions.describe", {"key": KEY}))["session"]
        assert row["pinned"] is True
        with pytest.raises(Refused, match=r"invalid sessions\.patchMany params"):
            await guest.call("sessions.patchMany", {"targets": [{"key": KEY}], "patch": {"pinned": "yes"}})


async def test_old_conversations_are_put_away_and_found_again(tmp_path: Path) -> None:
    rules = {"session": {"maintenance": {"pruneAfter": "1ms", "resetArchiveRetention": "1ms"}}}
    async with standing(tmp_path, rules) as gateway, gateway.guest() as guest:
        main, old = "agent:main:main", "agent:main:telegram:direct:7"
        for at, key in enumerate((main, old, "agent:main:subagent:0b1d", "agent:main:kept")):
            await say(guest, f"word{at}", f"k{at}", key)
        await guest.call("sessions.patch", {"key": "agent:main:kept", "pinned": True})
        look = await guest.call("sessions.cleanup", {"dryRun": True})
        assert (look["archived"], look["pruned"], look["dryRun"]) == (1, 1, True)
        done = await guest.call("sessions.cleanup", {})
        assert {each["key"]: each["action"] for each in done["actions"]} == {
            old: "archive", "agent:main:subagent:0b1d": "delete",
        }  # fmt: skip
        left = (await guest.call("sessions.list", {}))["sessions"]
        assert {row["key"] for row in left} == {main, "agent:main:kept"}
        found = await guest.call("sessions.search", {"query": "word1"})
        assert found["results"][0]["sessionKey"] == old
        assert len(list(tmp_path.glob("agents/main/sessions/*.deleted.*"))) == 1
        again = await guest.call("sessions.cleanup", {})
        assert (again["archived"], again["removedFiles"]) == (0, 1)
        assert list(tmp_path.glob("agents/main/sessions/*.deleted.*")) == []


async def test_what_was_said_before_a_reset_is_found_too(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        await say(guest, "pineapple", "k1")
        await guest.call("sessions.reset", {"key": KEY})
        await say(guest, "melon", "k2")
        await guest.call("sessions.reset", {"key": KEY})
        found = (await guest.call("sessions.search", {"query": "pineapple"}))["results"]
        assert {hit["role"] for hit in found} == {"user", "assistant"}
        other = await guest.call("sessions.search", {"query": "pineapple", "sessionKeys": ["agent:main:other"]})
        assert other["results"] == []
