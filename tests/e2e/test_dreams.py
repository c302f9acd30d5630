"""Dreams on the real program: what was written down and looked for is proposed, and comes in when its owner says so."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from tests.e2e.resident import Resident
from tests.e2e.test_approvals import results
from tests.e2e.test_house_tools import FRIEND, OWNER, house, say

pytestmark = pytest.mark.e2e

WIFI = "The cabin's wifi password is tulip-4471"
LISBON = "Bob moves to Lisbon in spring"


def diary(program: Resident) -> Path:
    path = program.state / "workspace" / "memory" / f"{datetime.now(UTC):%Y-%m-%d}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


async def told(program: Resident, *words: str) -> Any:
    code, out, err = await program.run("memory", *words, "--json")
    assert code == 0, (out, err)
    return json.loads(out)


@pytest.mark.req("SESS-18")
async def test_a_line_that_was_looked_for_is_kept_when_its_owner_says_so(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model, telegram):
        page = (
            f"- {WIFI}\n<!-- from a conversation with telegram:default:7 that read https://x.example/ -->\n- {LISBON}\n"
        )
        diary(program).write_text(page)
        memory = program.state / "workspace" / "MEMORY.md"
        memory.write_text("# Memory\n\n- I like tea\n")
        for query in ("wifi cabin", "password cabin", "tulip"):
            model.then(Use("tool_call", {"id": "memory_search", "args": {"query": query}}), Say("tulip"))
            await say(telegram, OWNER, f"look for {query}")
            assert "tulip-4471" in results(model)[-1]
        await told(program, "search", "who moves to Lisbon")
        low = ("--min-score", "0.3", "--min-recall-count", "1", "--min-unique-queries", "0")
        dry = await told(program, "dream", "--dry-run", *low)
        assert {row["text"] for row in dry["proposed"]} == {WIFI, LISBON}
        assert (await told(program, "dreams"))["dreams"] == []
        done = await told(program, "dream", *low)
        assert [each["outside"] for each in done["dreams"]] == [False, True]
        own, foreign = (each["id"] for each in done["dreams"])
        row = done["dreams"][0]["lines"][0]
        assert (row["text"], row["path"], row["line"]) == (WIFI, f"memory/{diary(program).name}", 1)
        shown = await told(program, "dreams", "show", own)
        assert f"+- {WIFI} <!-- from memory/{diary(program).name}#L1 -->" in shown["diff"]
        assert memory.read_text() == "# Memory\n\n- I like tea\n"
        code, _, err = await program.run("memory", "dreams", "apply", own)
        assert code == 0, err
        assert f"- {WIFI} <!-- from memory/{diary(program).name}#L1 -->" in memory.read_text()
        assert diary(program).read_text() == page
        code, _, err = await program.run("memory", "dreams", "apply", foreign)
        assert code != 0
        assert "nobody is there to be asked" in err
        assert LISBON not in memory.read_text()
        assert "telegram:default:7" in (await told(program, "dreams", "apply", foreign, "--yes"))["diff"]
        assert LISBON in memory.read_text()
        await told(program, "dreams", "undo", own)
        assert WIFI not in memory.read_text()
        assert LISBON in memory.read_text()
        assert (await told(program, "promote-explain", "wifi", *low))["candidates"][0]["why"] == [
            f"it was taken back with the dream {own}"
        ]
        await program.stop()
        code, out, err = await program.run("forget", "telegram:7", "--dry-run", "--json")
        assert code == 0, err
        assert json.loads(out)["promoted"] == 1
        assert json.loads(out)["dreamt"] == 1
        assert (await program.run("forget", "telegram:7", "--yes"))[0] == 0
        assert "Lisbon" not in memory.read_text()
        assert "I like tea" in memory.read_text()
        assert [each["state"] for each in (await told(program, "dreams"))["dreams"]] == ["undone"]


async def test_dreaming_is_switched_by_its_owner_alone_from_a_chat(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, _, telegram):
        await say(telegram, FRIEND, "/dreaming on")
        assert "Only an owner" in telegram.shown(FRIEND)[-1]
        await say(telegram, OWNER, "/dreaming")
        assert "Dreaming: off." in telegram.shown(OWNER)[-1]
        await say(telegram, OWNER, "/dreaming on")
        assert "Dreaming: on, 0 3 * * *" in telegram.shown(OWNER)[-1]
        assert "no model is asked" in telegram.shown(OWNER)[-1]
        code, out, _ = await program.run("config", "get", "plugins.entries.memory-core.config.dreaming.enabled")
        assert (code, out.strip()) == (0, "true")
        await say(telegram, OWNER, "/dreaming help")
        assert "garra memory dreams" in telegram.shown(OWNER)[-1]
        await say(telegram, OWNER, "/dreaming of sheep")
        assert "/dreaming status" in telegram.shown(OWNER)[-1]


async def test_a_conversation_begun_anew_knows_the_diary_and_nobody_else_s_does(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model, telegram):
        model.then(Say("hello"), Say("hi"), Say("yes"), Say("and now"), Say("friend"), Say("new friend"))
        await say(telegram, OWNER, "good morning")
        diary(program).write_text(f"- {WIFI}\n")
        await say(telegram, OWNER, "still here")
        assert WIFI not in model.requests[-1].raw.decode()
        await say(telegram, OWNER, "/new")
        await say(telegram, OWNER, "what do you know?")
        assert model.requests[-1].raw.decode().count("tulip-4471") == 1
        first = model.requests[-1].body["messages"]
        await say(telegram, OWNER, "and now?")
        assert model.requests[-1].body["messages"][: len(first)] == first
        await say(telegram, FRIEND, "hello")
        await say(telegram, FRIEND, "/new")
        await say(telegram, FRIEND, "hello again")
        assert "tulip-4471" not in model.requests[-1].raw.decode()
