"""What was written and said is found in the next session, by whoever may find it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from garra.testing.model_server import Say, Use
from tests.e2e.test_approvals import results
from tests.e2e.test_house_tools import FRIEND, OWNER, house, say

pytestmark = pytest.mark.e2e


@pytest.mark.req("SESS-16")
async def test_a_fact_is_found_in_the_next_session_and_by_nobody_else(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model, telegram):
        model.then(
            Use("write", {"path": "MEMORY.md", "content": "- The cabin's wifi password is tulip-4471\n"}), Say("kept")
        )
        await say(telegram, OWNER, "remember the cabin's wifi password")
        await say(telegram, FRIEND, "my secret pin is zebra-99")
        await say(telegram, OWNER, "/new")
        model.then(
            Use("tool_call", {"id": "memory_search", "args": {"query": "wifi password of the cabin"}}), Say("tulip")
        )
        await say(telegram, OWNER, "what was it?")
        assert "MEMORY.md#L1" in results(model)[-1]
        assert "tulip-4471" in results(model)[-1]
        model.then(Use("tool_call", {"id": "memory_search", "args": {"query": "secret pin zebra"}}), Say("nothing"))
        await say(telegram, OWNER, "does anybody have a pin?")
        assert "zebra-99" not in results(model)[-1]
        code, out, err = await program.run("memory", "search", "cabin wifi", "--json")
        assert code == 0, err
        assert json.loads(out)["results"][0]["citation"] == "MEMORY.md#L1"
        assert "zebra" not in out
        code, out, err = await program.run("memory", "status", "--json")
        assert code == 0, err
        assert {row["source"] for row in json.loads(out)[0]["status"]["sourceCounts"]} == {"memory", "sessions"}
        code, out, _ = await program.run("memory", "reindex")
        assert code == 0
        assert "files read" in out
