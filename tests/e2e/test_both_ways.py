"""Both ways round: our page on another gateway, the original's among them, and the original's page on ours."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from garra.testing.model_server import Say
from tests.e2e.browser import Tab, browsing
from tests.e2e.original import PAGE, needed, original
from tests.e2e.resident import TOKEN, Resident, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium"), pytest.mark.timeout(240)]

OTHER = "other-token-0123456789abcdef"
QUIET = ("/api/users/gateway-owner/avatar", "/control-ui-config.json")
"""What the original's page asks for, is refused, and goes on without: on the original's gateway as well the first."""


def link(to: Resident, token: str) -> str:
    return f"/?gatewayUrl={quote(f'ws://127.0.0.1:{to.port}/', safe='')}#token={token}"


def heard(tab: Tab) -> list[tuple[str, dict[str, Any]]]:
    """What the page sends, and where to."""
    sent: list[tuple[str, dict[str, Any]]] = []
    tab.page.on(
        "websocket", lambda socket: socket.on("framesent", lambda text: sent.append((socket.url, json.loads(text))))
    )
    return sent


async def test_a_link_to_another_gateway_is_asked_about_and_gets_nothing_of_our_own(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with strict_model() as model, resident(tmp_path / "a", model.url) as ours, browsing() as tab:
        other = Resident(tmp_path / "b", model.url)
        other.config["gateway"] = {
            "port": other.port, "auth": {"mode": "token", "token": OTHER},
            "controlUi": {"allowedOrigins": [f"http://127.0.0.1:{ours.port}"]},
        }  # fmt: skip
        other.write()
        await other.start()
        try:
            sent = heard(tab)
            await tab.open(ours, "/chat")
            await tab.page.wait_for_selector("chat-composer")
            device = sent[0][1]["params"]["device"]["id"]
            await tab.page.goto(f"http://127.0.0.1:{ours.port}{link(other, OTHER)}")
            await tab.sees("Speak to another gateway?")
            assert {url for url, _ in sent} == {f"ws://127.0.0.1:{ours.port}/"}
            sent.clear()
            assert await tab.unlabelled() == []
            await tab.page.wait_for_timeout(500)
            assert sent == []
            await tab.page.click("text=Stay with its own")
            await tab.page.wait_for_selector(".side")
            assert {url for url, _ in sent} == {f"ws://127.0.0.1:{ours.port}/"}
            sent.clear()
            await tab.page.goto(f"http://127.0.0.1:{ours.port}{link(other, OTHER)}")
            await tab.page.click(f"text=Speak to 127.0.0.1:{other.port}")
            await tab.sees(f"This page speaks to 127.0.0.1:{other.port}")
            hello = next(frame["params"] for _, frame in sent if frame["method"] == "connect")
            assert hello["auth"] == {"token": OTHER, "password": OTHER}
            assert hello["device"]["id"] != device
            await tab.page.click("text=Chat")
            await tab.page.wait_for_selector("chat-composer")
            model.then(Say("heard over there"))
            await tab.say("who are you?")
            await tab.sees("heard over there", ".bot:not(.live)")
            await tab.page.reload()
            await tab.sees("heard over there", ".bot:not(.live)")
            assert {url for url, _ in sent} == {f"ws://127.0.0.1:{other.port}/"}
            await tab.page.click("text=Back to its own gateway")
            await tab.page.wait_for_selector(".side")
            assert await tab.page.locator(".banner").count() == 0
            assert tab.faults == []
        finally:
            other.kill()
            await other.gone()


@needed
async def test_our_page_talks_with_the_originals_gateway(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "original").mkdir()
    async with strict_model() as model, resident(tmp_path / "ours", model.url) as ours:
        origin = f"http://127.0.0.1:{ours.port}"
        async with original(tmp_path / "original", model.url, origin) as other, browsing() as tab:
            model.then(Say("heard by the **original**"))
            await tab.page.goto(origin + link(other, TOKEN))
            await tab.page.click(f"text=Speak to 127.0.0.1:{other.port}")
            await tab.page.wait_for_selector("chat-composer")
            await tab.say("hello over there")
            await tab.sees("heard by the original", ".bot:not(.live)")
            shown = await tab.page.locator(".side a").all_inner_texts()
            assert "Inbox" not in [each.strip() for each in shown]
            faults: list[str] = []
            for name in await tab.page.locator(".side a").all():
                await name.click()
                await tab.page.locator("main h1").wait_for()
                await tab.page.locator(".skel").wait_for(state="detached")
                faults += [
                    f"{tab.page.url}: {each}" for each in await tab.page.locator(".notice.bad").all_inner_texts()
                ]
            await tab.page.goto(f"{origin}/sessions")
            await tab.sees("Main conversation", ".talks")
            assert [*faults, *tab.faults] == []


PAGES = ("sessions", "agents", "channels", "settings", "usage", "logs", "skills", "devices", "debug")


@needed
@pytest.mark.req("UI-01")
async def test_the_originals_page_loads_and_talks_on_ours(tmp_path: Path) -> None:
    async with strict_model() as model:
        garra = await asyncio.to_thread(Resident, tmp_path, model.url)
        garra.config["gateway"] |= {"controlUi": {"root": str(PAGE)}}
        garra.write()
        await garra.start()
        try:
            async with browsing() as tab:
                refused: list[str] = []
                tab.page.on("response", lambda got: refused.append(got.url) if got.status >= 400 else None)
                await tab.page.goto(f"http://127.0.0.1:{garra.port}/chat#token={TOKEN}")
                model.then(Say("heard on the original's page"))
                box = tab.page.locator("textarea").first
                await box.fill("hello from over there")
                await tab.page.keyboard.press("Enter")
                await tab.sees("heard on the original's page", "body")
                for name in PAGES:
                    await tab.page.goto(f"http://127.0.0.1:{garra.port}/{name}")
                    await tab.page.locator("main, openclaw-app").first.wait_for()
                    await tab.page.wait_for_timeout(1_500)
                assert [url for url in refused if not any(each in url for each in QUIET)] == []
                assert [said for said in tab.faults if not re.search("Failed to load resource", said)] == []
        finally:
            garra.kill()
            await garra.gone()
