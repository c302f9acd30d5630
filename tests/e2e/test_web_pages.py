"""Every page of the web page, by its one table of routes: it stands against a running gateway that was lived in, by day
and by night, wide and narrow, says nothing that cannot be heard, and asks for nothing but public methods.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from garra.core.scopes import ADMIN, APPROVALS, PAIRING, QUESTIONS, READ, TALK, WRITE
from garra.gateway import table
from tests.e2e.browser import ROOT, Tab, browsing
from tests.e2e.lived_in import lived_in
from tests.e2e.resident import TOKEN, Resident

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium"), pytest.mark.timeout(300)]

ROUTES = re.findall(r'{ path: "([^"]+)"', (ROOT / "web" / "src" / "routes.ts").read_text())
SCOPES = {ADMIN, APPROVALS, PAIRING, QUESTIONS, READ, TALK, WRITE}
QUIET_MS = 400
WIDE = """() => [document.documentElement, document.querySelector('main')].map(
  (each) => each.scrollWidth - each.clientWidth).reduce((most, each) => Math.max(most, each), 0)"""


def places() -> list[str]:
    """The address of each page."""
    return [route.split("/:")[0] for route in ROUTES]


async def stands(tab: Tab, garra: Resident, path: str, shots: Path) -> list[str]:
    """What is wrong with a page, by day and by night."""
    found: list[str] = []
    await tab.page.goto(f"http://127.0.0.1:{garra.port}{path}")
    await tab.page.locator("main h1").wait_for()
    await tab.page.wait_for_timeout(QUIET_MS)
    await tab.page.locator(".skel").wait_for(state="detached")
    if not tab.page.url.split(str(garra.port))[1].startswith(path):
        found.append(f"led to {tab.page.url}")
    for scheme in ("light", "dark"):
        await tab.page.emulate_media(color_scheme=scheme)
        await tab.page.screenshot(path=shots / f"{path.strip('/').replace('/', '-')}-{scheme}.png")
        found += [f"{scheme}: {each}" for each in await tab.unlabelled()]
    if (wide := await tab.page.evaluate(WIDE)) > 0:
        found.append(f"{wide} pixels too wide")
    found += tab.faults
    tab.faults.clear()
    return [f"{path}: {each}" for each in found]


@pytest.mark.req("UI-01", "GW-17")
@pytest.mark.parametrize("width", [1280, 390])
async def test_each_page_stands(tmp_path: Path, width: int) -> None:
    async with lived_in(tmp_path) as here, browsing(width=width) as tab:
        called: set[str] = set()
        tab.page.on(
            "websocket", lambda socket: socket.on("framesent", lambda text: called.add(json.loads(text)["method"]))
        )
        await tab.page.goto(f"http://127.0.0.1:{here.program.port}/#token={TOKEN}")
        await tab.page.wait_for_selector(".mail")
        faults: list[str] = []
        for path in places():
            faults += await stands(tab, here.program, path, tmp_path)
        assert faults == []
        public = (await asyncio.to_thread(table.document))["methods"]
        called.discard("connect")
        assert len(called) > len(ROUTES)
        assert {name: public[name]["scope"] for name in called if public[name]["scope"] not in SCOPES} == {}
