"""The pages of how the house works, each with an act of a person: from approvals to the turns."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from tests.e2e.browser import Tab, browsing
from tests.e2e.resident import Resident, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium"), pytest.mark.timeout(240)]

RIGHTS = [f"operator.{name}" for name in ("admin", "read", "write", "pairing", "approvals")]
COMMAND = "rm -rf build"
MORE = {
    "tools": {"exec": {"host": "gateway", "security": "allowlist", "ask": "on-miss"}, "deny": ["apply_patch"]},
    "channels": {"irc": {"host": "127.0.0.1", "port": 9, "tls": False, "nick": "garra"}},
}


async def approvals(tab: Tab, garra: Resident) -> None:
    await tab.sees(COMMAND, ".ask")
    await tab.page.click(".ask >> text=Deny")
    await tab.sees("refused", ".table")


async def channels(tab: Tab, garra: Resident) -> None:
    await tab.sees("IRC", ".card")
    await tab.page.click(".card >> text=Stop")
    await tab.page.click("dialog >> button.p")
    await tab.page.locator(".card >> text=Start").wait_for()


async def devices(tab: Tab, garra: Resident) -> None:
    await tab.page.click(".card >> text=Rename")
    await tab.page.fill("#label", "Kitchen browser")
    await tab.page.click("dialog >> button.p")
    await tab.sees("Kitchen browser", ".card")


async def security(tab: Tab, garra: Resident) -> None:
    await tab.page.click(".notice >> text=Mend them")
    await tab.page.click("dialog >> button.p")
    await tab.sees("chmod", "dialog")
    await tab.page.click("dialog >> text=Close")
    assert (await asyncio.to_thread(garra.config_file.stat)).st_mode & 0o777 == 0o600


async def doctor(tab: Tab, garra: Resident) -> None:
    await tab.sees("irc", ".rows")
    await tab.page.click("text=Look again")
    await tab.page.locator(".rows .card").first.wait_for()


async def tools(tab: Tab, garra: Resident) -> None:
    await tab.page.fill("#seek", "apply_patch")
    await tab.page.get_by_role("button", name="Why: apply_patch").click()
    await tab.sees("tools.deny", "dialog")
    await tab.page.click("dialog >> text=Close")


async def config(tab: Tab, garra: Resident) -> None:
    await tab.page.goto(f"http://127.0.0.1:{garra.port}/config/logging")
    await tab.page.select_option("#key-logging-level", "debug")
    await tab.page.click("text=See what changes")
    await tab.sees('"level": "debug"', "dialog .come")
    await tab.page.click("dialog >> button.p")
    await tab.sees("Saved.", "body")
    kept: dict[str, Any] = json.loads(await asyncio.to_thread(garra.config_file.read_text))
    assert kept["logging"]["level"] == "debug"
    assert kept["gateway"] == garra.config["gateway"]


async def logs(tab: Tab, garra: Resident) -> None:
    await tab.sees("ready on port", ".log")
    await tab.page.fill("#seek", "no such line")
    await tab.sees("No line fits")


async def debug(tab: Tab, garra: Resident) -> None:
    await tab.page.fill("#method", "sessions.list")
    await tab.page.click("form >> text=Ask")
    await tab.sees("agent:main:main", "garra-code")
    await tab.page.fill("#params", "{")
    await tab.page.click("form >> text=Ask")
    await tab.sees("That is no JSON", ".wrong")


async def trace(tab: Tab, garra: Resident) -> None:
    await tab.page.locator(".table a").last.click()
    await tab.sees("ls", ".falls")
    await tab.page.locator(".falls summary").last.click()
    await tab.page.locator(".falls details[open] dd").first.wait_for()


ACTS = (approvals, channels, devices, security, doctor, tools, config, logs, debug, trace)


async def test_each_page_of_how_it_works_stands_and_acts(tmp_path: Path) -> None:
    async with (
        strict_model() as model,
        resident(tmp_path, model.url, MORE) as garra,
        browsing() as tab,
        garra.client(scopes=RIGHTS, caps=["exec-approvals"]) as client,
    ):
        await asyncio.to_thread(garra.config_file.chmod, 0o644)
        model.then(Use("ls", {"path": "."}), Say("Two files."))
        await client.say("what is here?")
        model.then(Use("exec", {"command": COMMAND}), Say("It was refused."))
        run_id = await client.send("clean up", session="agent:main:work")
        await tab.open(garra, "/")
        await tab.page.wait_for_selector(".mail")
        faults: list[str] = []
        for act in ACTS:
            await tab.page.goto(f"http://127.0.0.1:{garra.port}/{act.__name__}")
            await tab.page.locator(".page .card, .page .table, .ask, .log, .field").first.wait_for()
            faults += [f"{act.__name__}: {each}" for each in await tab.unlabelled()]
            await act(tab, garra)
        assert faults + tab.faults == []
        await client.until(run_id)
