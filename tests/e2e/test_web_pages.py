"""Every page of the web page, by its one table of routes: it stands against a running gateway, by day and by night,
wide and narrow, and says nothing that cannot be heard."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from garra.testing.model_server import Say
from tests.e2e.browser import ROOT, Tab, browsing
from tests.e2e.resident import Resident, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium"), pytest.mark.timeout(300)]

ROUTES = re.findall(r'{ path: "([^"]+)"', (ROOT / "web" / "src" / "routes.ts").read_text())
QUIET_MS = 400


def places() -> list[str]:
    """The address of each page."""
    return [route.split("/:")[0] for route in ROUTES]


async def stands(tab: Tab, garra: Resident, path: str, shot: Path) -> list[str]:
    """What is wrong with a page."""
    await tab.page.goto(f"http://127.0.0.1:{garra.port}{path}")
    await tab.page.locator("main h1").wait_for()
    await tab.page.wait_for_timeout(QUIET_MS)
    await tab.page.locator(".skel").wait_for(state="detached")
    await tab.page.screenshot(path=shot)
    faults = [f"{path}: {fault}" for fault in (*tab.faults, *await tab.unlabelled())]
    wide = await tab.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    tab.faults.clear()
    return [*faults, *([f"{path}: {wide} pixels too wide"] if wide > 0 else [])]


@pytest.mark.req("UI-01")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
async def test_each_page_stands(tmp_path: Path, width: int, scheme: str) -> None:
    async with (
        strict_model() as model,
        resident(tmp_path, model.url) as garra,
        browsing(width=width, color_scheme=scheme) as tab,
    ):
        model.then(Say("There are **three** offers."))
        async with garra.client() as client:
            await client.say("how many offers?")
        await tab.open(garra, "/")
        await tab.page.wait_for_selector(".mail")
        faults: list[str] = []
        for path in places():
            faults += await stands(tab, garra, path, tmp_path / f"{path.strip('/').replace('/', '-')}.png")
        assert faults == []
