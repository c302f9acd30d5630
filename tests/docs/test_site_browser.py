"""The site in a browser, from the disk: search in two languages, light and dark, the width of a phone, no request."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from docs.make import site

from tests.e2e.browser import Tab, browsing

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium"), pytest.mark.timeout(120)]
PAGES = (
    "index.html",
    "docs/concepts/architecture.html",
    "docs/reference/settings.html",
    "docs/zh/getting-started.html",
)


async def found(tab: Tab, words: str) -> str:
    await tab.page.keyboard.press("/")
    await tab.page.fill("#search", words)
    await tab.page.locator("#found a").first.wait_for()
    return await tab.page.inner_text("#found")


async def test_it_is_read_and_searched_without_a_network(tmp_path: Path) -> None:
    await asyncio.to_thread(site.build, tmp_path)
    asked: list[str] = []
    for width, scheme in ((1280, "light"), (390, "dark")):
        async with browsing(width=width, height=844, color_scheme=scheme) as tab:
            tab.page.on("request", lambda request: asked.append(request.url))
            for name in PAGES:
                await tab.page.goto((tmp_path / name).as_uri())
                assert await tab.page.evaluate("document.documentElement.scrollWidth") <= width, name
                assert tab.faults == []
                assert await tab.unlabelled() == [], name
                tab.faults.clear()  # what looks for labels reads style sheets in a way that files do not allow
            assert "快速上手" in await found(tab, "沙箱")
            assert "gateway" in (await found(tab, "gateway.port")).lower()
            async with tab.page.expect_navigation():
                await tab.page.keyboard.press("Enter")
            await tab.page.wait_for_load_state()
            before = await tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
            await tab.page.click("#theme")
            assert await tab.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
            assert tab.faults == []
    assert not [url for url in asked if not url.startswith("file:")]
