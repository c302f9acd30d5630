"""The pages of the house, each with an act of a person: conversations, what was spent, models, memory, agents."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from garra.testing.model_server import Say
from tests.e2e.browser import Tab, browsing
from tests.e2e.resident import Resident, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium"), pytest.mark.timeout(180)]


async def sessions(tab: Tab, garra: Resident) -> None:
    await tab.page.locator(".talk button").first.click()
    await tab.page.fill("#talk-name", "Offers of the week")
    await tab.page.click("dialog >> text=Rename")
    await tab.sees("Offers of the week", ".talks")
    await tab.page.fill("#seek", "no such words")
    await tab.sees("Nothing found")


async def usage(tab: Tab, garra: Resident) -> None:
    await tab.page.locator(".plot rect").last.wait_for()
    await tab.page.click(".choose >> text=conversation")
    await tab.sees("agent:main:main", ".table")


async def models(tab: Tab, garra: Resident) -> None:
    await tab.sees("fake/fake", ".table")
    await tab.page.fill("#seek", "no such model")
    await tab.sees("Nothing found")


async def memory(tab: Tab, garra: Resident) -> None:
    await tab.page.click("text=MEMORY.md")
    await tab.sees("The gate code is in the blue book", "dialog")
    await tab.page.click("dialog >> text=Close")
    await tab.page.fill("#seek", "gate code")
    await tab.page.press("#seek", "Enter")
    await tab.page.locator(".hit, .empty").first.wait_for()


async def agents(tab: Tab, garra: Resident) -> None:
    await tab.page.click(".file >> text=SOUL.md")
    await tab.page.fill("#file", "# SOUL.md\n\nCalm and exact.\n")
    await tab.page.click("dialog >> text=See what changes")
    await tab.sees("Calm and exact.", "dialog .come")
    await tab.page.click("dialog >> text=Save")
    await tab.sees("SOUL.md is saved.", "body")
    kept = await asyncio.to_thread((garra.state / "workspace" / "SOUL.md").read_text)
    assert kept == "# SOUL.md\n\nCalm and exact.\n"


async def test_each_page_of_the_house_stands_and_acts(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as garra, browsing() as tab:
        model.then(Say("There are **three** offers."))
        async with garra.client() as client:
            await client.say("how many offers?")
        note = garra.state / "workspace" / "MEMORY.md"
        await asyncio.to_thread(note.write_text, "# MEMORY.md\n\n- The gate code is in the blue book.\n")
        await tab.open(garra, "/")
        await tab.page.wait_for_selector(".mail")
        faults: list[str] = []
        for act in (sessions, usage, models, memory, agents):
            await tab.page.goto(f"http://127.0.0.1:{garra.port}/{act.__name__}")
            await tab.page.locator(".page .card, .page .table, .page .stats").first.wait_for()
            faults += [f"{act.__name__}: {each}" for each in await tab.unlabelled()]
            await act(tab, garra)
        assert faults + tab.faults == []


WIFI = "The cabin's wifi password is tulip-4471"
LISBON = "Bob moves to Lisbon in spring"
PAGE = f"- {WIFI}\n<!-- from a conversation with telegram:default:7 that read https://x.example/ -->\n- {LISBON}\n"
LOW = {"minScore": 0.1, "minRecallCount": 1, "minUniqueQueries": 0}


async def test_a_proposal_is_read_as_a_change_and_kept_or_taken_back(tmp_path: Path) -> None:
    owners = {"commands": {"ownerAllowFrom": ["telegram:7"]}}
    async with strict_model() as model, resident(tmp_path, model.url, owners) as garra, browsing() as tab:
        memory = garra.state / "workspace" / "MEMORY.md"
        diary = garra.state / "workspace" / "memory" / f"{datetime.now(UTC):%Y-%m-%d}.md"
        await asyncio.to_thread(diary.write_text, PAGE)
        async with garra.client() as client:
            await client.call("memory.index", {"force": True, "wait": True})
            for query in ("wifi cabin password", "who moves to Lisbon"):
                got = await client.call("memory.search", {"query": query})
                assert got["results"], (query, got)
            assert (await client.call("memory.dream", LOW))["dreams"]
        await tab.open(garra, "/memory")
        await tab.sees(LISBON, ".dream.warn")
        await tab.page.locator(".dream.warn button").click()
        await tab.sees(LISBON, "dialog .come")
        assert await tab.unlabelled() == []
        await tab.page.click("dialog >> text=Keep it")
        await tab.sees("Keep words from outside?", "dialog")
        await tab.page.click("dialog >> text=Keep it")
        await tab.sees("kept", ".dream")
        assert LISBON in await asyncio.to_thread(memory.read_text)
        await tab.page.locator(".dream", has_text=LISBON).locator("button").click()
        await tab.page.click("dialog >> text=Take it back")
        await tab.sees("taken back", ".dream")
        assert LISBON not in await asyncio.to_thread(memory.read_text)
        assert tab.faults == []
