"""The web page against a running gateway: it loads, speaks, streams, and nothing is said twice or lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from garra.core.scopes import ADMIN, APPROVALS, PAIRING, QUESTIONS, READ, TALK, WRITE
from garra.gateway import table
from garra.testing.model_dialects import Raw, completions
from garra.testing.model_server import Say
from tests.e2e.browser import Tab, browsing
from tests.e2e.outside import until
from tests.e2e.resident import Resident, StrictModel, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium"), pytest.mark.timeout(120)]

ASK = {"tools": {"exec": {"host": "gateway", "security": "full", "ask": "always"}}}
SCOPES = {ADMIN, APPROVALS, PAIRING, QUESTIONS, READ, TALK, WRITE}


def slowly(text: str, pause_s: float = 0.2) -> Raw:
    """An answer whose words come one after the other."""
    return Raw(tuple(completions(Say(text), "fake")), pause_s=pause_s)


def told(model: StrictModel, text: str) -> int:
    """How often a person's message with exactly this text stands in the newest request."""
    said = model.requests[-1].body["messages"]
    return sum(1 for each in said if each["role"] == "user" and text in json.dumps(each["content"]))


async def test_a_turn_is_said_and_answered_on_the_page(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as garra, browsing() as tab:
        await tab.open(garra, "/chat")
        assert "token" not in tab.page.url
        model.then(Say("Offer **2** leaves out the roof.\n\n```\nwalls 17,900\n```", thinking="roofs first"))
        await tab.say("which one?")
        await tab.sees("leaves out the roof", ".bot:not(.live)")
        assert await tab.page.locator(".bot strong").inner_text() == "2"
        assert await tab.page.locator(".bot pre").first.inner_text() == "walls 17,900"
        assert "16 tokens" in await tab.text(".foot")
        assert await tab.unlabelled() == []
        assert tab.faults == []


async def test_what_looks_like_markup_in_an_answer_is_text(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as garra, browsing() as tab:
        await tab.open(garra, "/chat")
        evil = '<img src=x onerror="window.hit=1"> [go](javascript:hit=1) ![p](http://127.0.0.1:9/p) <b>bold</b>'
        model.then(Say(evil))
        await tab.say("show me")
        await tab.sees("<b>bold</b>", ".bot:not(.live)")
        assert await tab.page.locator(".bot img, .bot b, .bot a[href^=javascript]").count() == 0
        assert await tab.page.evaluate("window.hit") is None
        assert tab.faults == []


@pytest.mark.req("UI-05")
async def test_two_clicks_say_it_once(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as garra, browsing() as tab:
        await tab.open(garra, "/chat")
        model.then(Say("heard once"))
        await tab.page.fill("#words", "only once please")
        await tab.page.dblclick("text=Send")
        await tab.sees("heard once", ".bot:not(.live)")
        assert await tab.page.locator(".me").count() == 1
        assert told(model, "only once please") == 1


@pytest.mark.req("UI-04")
async def test_a_long_message_is_shown_in_part_and_then_whole(tmp_path: Path) -> None:
    long = "\n\n".join(f"paragraph {number} " + "kelp " * 200 for number in range(60))
    async with strict_model() as model, resident(tmp_path, model.url) as garra, browsing() as tab:
        model.then(Say(f"{long}\n\nthe very end"))
        async with garra.client() as client:
            await client.say("tell me all")
        await tab.open(garra, "/chat")
        await tab.sees("more characters)")
        assert await tab.page.get_by_text("the very end").count() == 0
        await tab.page.click("text=Show all of it")
        await tab.sees("the very end")
        assert await tab.page.get_by_text("Show all of it").count() == 0


@pytest.mark.req("UI-04")
async def test_a_reload_midway_loses_nothing(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(30))
    async with strict_model() as model, resident(tmp_path, model.url) as garra, browsing() as tab:
        await tab.open(garra, "/chat")
        model.then(slowly(words))
        await tab.say("slowly")
        await tab.sees("word3", ".bot.live")
        await tab.page.reload()
        await tab.sees("word0 word1", ".bot.live")
        await tab.sees(words, ".bot:not(.live)")
        assert await tab.page.locator(".bot").count() == 1
        assert await tab.page.locator(".me").count() == 1
        assert tab.faults == []


async def test_a_message_said_while_the_gateway_is_away_goes_out_once_when_it_is_back(tmp_path: Path) -> None:
    async with strict_model() as model:
        garra = Resident(tmp_path, model.url)
        await garra.start()
        try:
            async with browsing() as tab:
                await tab.open(garra, "/chat")
                garra.kill()
                await garra.gone()
                await tab.sees("The gateway does not answer", ".banner")
                await tab.say("are you there?")
                await tab.sees("as soon as the gateway is back")
                model.then(Say("here again"))
                await garra.start()
                await tab.sees("here again", ".bot:not(.live)")
                assert await tab.page.locator(".me").count() == 1
                assert told(model, "are you there?") == 1
        finally:
            garra.kill()
            await garra.gone()


async def test_a_question_is_answered_where_it_stands_and_a_run_is_stopped(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url, ASK) as garra, browsing() as tab:
        await tab.open(garra, "/chat")
        await tab.say('tool:exec {"command": "echo from-the-page"}')
        await tab.sees("Run this command?", ".ask")
        assert await tab.page.locator(".ask pre").inner_text() == "echo from-the-page"
        assert await tab.unlabelled() == []
        await tab.page.click("text=Allow once")
        await tab.sees("tool done", ".bot:not(.live)")
        await tab.page.locator("details.tool").first.click()
        await tab.sees("from-the-page", "details.tool[open]")
        await tab.say("sleep:60")
        await tab.page.click("text=Stop")
        await tab.sees("Stopped.")
        assert tab.faults == []


async def test_the_keys_go_everywhere(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url, ASK) as garra, browsing() as tab:
        await tab.open(garra, "/inbox")
        await tab.sees("No message yet")
        await tab.page.keyboard.press("g")
        await tab.page.keyboard.press("c")
        await tab.page.wait_for_selector("chat-composer")
        await tab.page.keyboard.press("?")
        await tab.sees("Allow the question at hand, once", "dialog")
        await tab.page.keyboard.press("Escape")
        await tab.page.keyboard.press("i")
        await tab.page.keyboard.type('tool:exec {"command": "echo by-key"}')
        await tab.page.keyboard.press("Enter")
        await tab.sees("Run this command?", ".ask")
        await tab.page.evaluate("document.activeElement.blur()")
        await tab.page.keyboard.press("a")
        await tab.sees("tool done", ".bot:not(.live)")
        await tab.page.keyboard.press("/")
        await tab.page.wait_for_selector("#find")
        await tab.page.keyboard.type("by-key")
        await tab.page.locator(".hit").first.wait_for()
        await tab.page.keyboard.press("Escape")
        await tab.page.keyboard.press("g")
        await tab.page.keyboard.press("i")
        await tab.page.wait_for_selector(".mail")
        await tab.page.keyboard.press("j")
        assert await tab.page.evaluate("document.activeElement.className") == "mail past"
        await tab.page.keyboard.press("Enter")
        await tab.sees("finished", "dialog")
        assert await tab.unlabelled() == []
        assert tab.faults == []


@pytest.mark.req("GW-17")
async def test_each_call_of_the_page_is_a_public_method_that_asks_for_a_right(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as garra, browsing() as tab:
        frames = recorded(tab)
        await tab.open(garra, "/chat")
        model.then(Say("hello to you"))
        await tab.say("hello")
        await tab.sees("hello to you", ".bot:not(.live)")
        await tab.page.goto(f"http://127.0.0.1:{garra.port}/inbox")
        await tab.page.wait_for_selector(".mail")
        await until(lambda: any(frame.get("method") == "messages.get" for frame in frames))
        called = {frame["method"] for frame in frames if frame["type"] == "req"} - {"connect"}
        assert {"chat.send", "chat.history", "messages.list", "models.list"} <= called
        public = (await asyncio.to_thread(table.document))["methods"]
        assert {public[name]["scope"] for name in called} <= SCOPES


def recorded(tab: Tab) -> list[dict[str, Any]]:
    """What the page sends, as it comes."""
    frames: list[dict[str, Any]] = []
    tab.page.on("websocket", lambda socket: socket.on("framesent", lambda text: frames.append(json.loads(text))))
    return frames
