"""The web page in a real browser: the system's Chromium, what it complained of, and axe-core's word on the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, Page, async_playwright

from tests.e2e.resident import TOKEN, Resident

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip
WAIT_MS = 30_000
RULES = "() => axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'best-practice'], resultTypes: ['violations']})"


@dataclass
class Tab:
    """One page, and every error it showed: on the console, uncaught, or as a file that did not come."""

    page: Page
    context: BrowserContext
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda fault: self.faults.append(str(fault)))

    async def open(self, resident: Resident, path: str = "/", token: str = TOKEN) -> None:
        """Go to a path of a gateway, handing over its secret in the address, and wait for the page's heading."""
        tail = f"#token={token}" if token else ""
        await self.page.goto(f"http://127.0.0.1:{resident.port}{path}{tail}")
        await self.page.wait_for_selector("h1")

    async def say(self, text: str) -> None:
        await self.page.fill("#words", text)
        await self.page.keyboard.press("Enter")

    async def text(self, selector: str = "garra-app") -> str:
        return await self.page.inner_text(selector)

    async def sees(self, text: str, selector: str = "garra-app") -> None:
        """Wait until the text stands there."""
        await self.page.locator(selector).get_by_text(text).first.wait_for()

    async def unlabelled(self) -> list[str]:
        """What axe-core finds against the page, a line each; nothing where it is not installed."""
        if not await asyncio.to_thread(AXE.is_file):
            return []
        await self.page.evaluate(await asyncio.to_thread(AXE.read_text))
        found: dict[str, Any] = await self.page.evaluate(RULES)
        return [
            f"{each['id']}: {node['html'][:160]} ({node['failureSummary'][:200]})"
            for each in found["violations"]
            for node in each["nodes"]
        ]


@asynccontextmanager
async def browsing(*, width: int = 1280, height: int = 860, **more: Any) -> AsyncIterator[Tab]:
    """A fresh browser with one tab; `more` is what a playwright context takes (`color_scheme="dark"`)."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            context = await browser.new_context(viewport={"width": width, "height": height}, **more)
            yield Tab(await context.new_page(), context)
        finally:
            await browser.close()
