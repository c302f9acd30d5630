"""The browser, with the system's Chromium, against servers on loopback that its owner listed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from garra.app.shelf import Shelf
from garra.builtin.tools.browser.browser import Browser
from garra.config.sections import Config
from garra.core.ids import SessionKey
from garra.core.messages import Image, ToolCall, ToolResult
from garra.core.secret import Bound, Secret
from garra.core.taint import Mark, of
from garra.domains.delivery.handles import SPACE, Handles
from garra.domains.delivery.media import MediaRoot
from garra.domains.tools.pipeline import Pipeline
from garra.domains.web.browser import Host
from garra.io.clock import SystemClock
from garra.io.process.child import started_at
from garra.io.process.door import Programs
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf as Rows
from garra.io.tasks import Tasks
from garra.sdk.ports import DIRECT
from garra.testing.web import Request, answered, serving
from tests.builtin.tools.place import context
from tests.builtin.tools.test_media import Eyes
from tests.stored import stored

pytestmark = [pytest.mark.timeout(60)]
chromium = pytest.mark.needs("chromium")

PAGE = b"""<title>Form</title><h1>Say it</h1><input aria-label="name"><button onclick="
 document.querySelector('h1').textContent = 'Hello ' + document.querySelector('input').value;
 console.log('pressed')">Go</button>
<select aria-label="size"><option>S<option>L</select><a href="/file" download="crab.txt">file</a>"""


class BrowserPlace:
    def __init__(self, root: Path, config: dict[str, Any], spawn: Tasks, db: Database) -> None:
        self.folder = root / "browser"
        self.config = Config.model_validate({"browser": config})
        self.programs, clock = Programs(), SystemClock()
        self.bound: tuple[Bound, ...] = ()
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(sys.path)}
        self.host = Host(
            self.folder, lambda: self.config.browser, lambda: DIRECT,
            programs=self.programs, env=env, spawn=spawn, clock=clock, bound=lambda: self.bound,
        )  # fmt: skip
        media = MediaRoot(root / "media", clock)
        self.shelf = Shelf(media, Handles(Rows(db, SPACE), media))
        tool = Browser(self.host, Eyes(), self.shelf)
        self.pipeline = Pipeline(lambda: (tool,), lambda _: (), clock)
        self.context = replace(context(root), model="eyes/one")

    async def call(self, action: str, *, session: str = "agent:main:main", **more: Any) -> ToolResult:
        here = replace(self.context, session_key=SessionKey(session))
        return await self.pipeline.call(ToolCall("c", "browser", {"action": action, **more}), here, lambda _: None)

    async def said(self, action: str, **more: Any) -> str:
        result = await self.call(action, **more)
        assert not result.is_error, result.text
        return result.text


@asynccontextmanager
async def browsing(root: Path, *hosts: str, **more: Any) -> AsyncIterator[BrowserPlace]:
    async with Tasks() as spawn, stored(root) as db:
        config = {"enabled": True, "ssrfPolicy": {"allowedHostnames": list(hosts)}, **more}
        place = BrowserPlace(root, config, spawn, db)
        try:
            yield place
        finally:
            await place.host.close()
            await place.programs.close()


def ref(snapshot: str, words: str) -> str:
    line = next(line for line in snapshot.splitlines() if words in line)
    return line.partition("[ref=")[2].partition("]")[0]


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if started_at(pid) is not None and not _zombie(pid)]


def _zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True


async def test_off_or_lacking_something_it_says_what_to_do(tmp_path: Path) -> None:
    async with browsing(tmp_path, enabled=False) as place:
        assert "browser.enabled true" in (await place.call("open", url="https://example.com")).text
    async with browsing(tmp_path, executablePath="/no/such") as place:
        assert "/no/such is no program" in (await place.call("open", url="https://example.com")).text
        assert (await place.call("status")).details["running"] is False


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "chrome://settings", "javascript:1", "data:text/html,x", "http://u:p@x/", "about:blank", ""],
)
async def test_only_addresses_of_the_web_are_opened(tmp_path: Path, url: str) -> None:
    async with browsing(tmp_path) as place:
        assert "not opened" in (await place.call("navigate", url=url)).text
    assert not place.folder.exists()


async def test_a_secret_for_named_hosts_is_typed_into_no_page_and_no_other_address(tmp_path: Path) -> None:
    async with browsing(tmp_path) as place:
        place.bound = (Bound("KEY", Secret("sk-bound-0123456789"), ("api.example.com",)),)
        told = await place.call("open", url="https://evil.example/?k=sk%2Dbound-0123456789")
        assert "KEY may not go to evil.example, only to api.example.com" in told.text
        told = await place.call("act", kind="type", ref="e1", text="it is sk-bound-0123456789")
        assert "KEY may not go to a page" in told.text
    assert not place.folder.exists()


@chromium
async def test_a_page_is_read_and_worked_with(tmp_path: Path) -> None:
    async def answer(request: Request) -> bytes:
        if request.path == "/file":
            return answered(200, b"claws", "application/octet-stream")
        return answered(200, PAGE, "text/html")

    async with serving(answer) as url, browsing(tmp_path, "127.0.0.1") as place:
        opened = await place.call("open", url=f"{url}/form")
        assert of(opened.meta) == (Mark("web", f"{url}/form"),)
        assert "Title: Form" in opened.text
        await place.said("act", kind="type", ref=ref(opened.text, "textbox"), text="crab")
        await place.said("act", kind="select", ref=ref(opened.text, "combobox"), values=["L"])
        await place.said("act", request={"kind": "click", "ref": ref(opened.text, "button")})
        assert "Hello crab" in await place.said("snapshot")
        assert "log: pressed" in await place.said("console")
        shot = await place.call("screenshot")
        assert [part.media_type for part in shot.content if isinstance(part, Image)] == ["image/jpeg"]
        told = await place.said("act", kind="click", ref=ref(opened.text, "link"))
        async with asyncio.timeout(15):
            while "crab.txt" not in told:
                told = await place.said("snapshot")
        assert "crab.txt" in told
        handle = told.partition("media://")[2].partition("]")[0]
        assert await place.shelf.read(SessionKey("agent:main:main"), f"media://{handle}", 100) == b"claws"
        assert "e999" in (await place.call("act", kind="click", ref="e999")).text


@chromium
async def test_what_is_not_public_is_not_reached_by_any_way(tmp_path: Path) -> None:
    seen: list[str] = []

    async def answer(request: Request) -> bytes:
        seen.append(f"{request.headers['host']} {request.path}")
        port = request.headers["host"].partition(":")[2]
        other = f"127.0.0.2:{port}"
        body = (
            f"<h1>x</h1><img src=http://{other}/img><iframe src=http://{other}/frame></iframe><script>"
            f"fetch('http://{other}/fetch',{{mode:'no-cors'}});new WebSocket('ws://{other}/ws');"
            f"navigator.sendBeacon('http://{other}/beacon');fetch('http://localhost:{port}/local',{{mode:'no-cors'}})"
            "</script>"
        )
        if request.path == "/away":
            return f"HTTP/1.1 302 x\r\nlocation: http://{other}/redirected\r\ncontent-length: 0\r\n\r\n".encode()
        return answered(200, body.encode(), "text/html")

    async with serving(answer) as url, browsing(tmp_path, "127.0.0.1") as place:
        await place.said("open", url=f"{url}/page")
        await place.said("act", kind="wait", timeMs=800)
        await place.call("navigate", url=f"{url}/away")
        refused = await place.call("open", url=url.replace("127.0.0.1", "127.0.0.2"))
        assert "<h1>" not in refused.text
    assert {line.split(":")[0] for line in seen} == {"127.0.0.1"}


@chromium
@pytest.mark.timeout(120)
async def test_tabs_are_limited_and_a_session_sees_its_own(tmp_path: Path) -> None:
    async def answer(request: Request) -> bytes:
        return answered(200, b"<title>T</title>" + request.headers.get("cookie", "none").encode(), "text/html")

    async with serving(answer) as url, browsing(tmp_path, "127.0.0.1", tabCleanup={"maxTabsPerSession": 3}) as place:
        for number in range(12):
            await place.said("open", url=f"{url}/{number}")
        mine = await place.call("tabs")
        assert [tab["url"] for tab in mine.details["tabs"]] == [f"{url}/{number}" for number in (9, 10, 11)]
        assert "No tab" in await place.said("tabs", session="agent:main:other")
        assert "no tab" in (await place.call("snapshot", session="agent:main:other", targetId="t12")).text
        await place.said("close", targetId="t12")
        assert len((await place.call("tabs")).details["tabs"]) == 2


@chromium
async def test_stopping_leaves_no_process_and_the_next_start_ends_what_was_left(tmp_path: Path) -> None:
    async def answer(_: Request) -> bytes:
        return answered(200, PAGE, "text/html")

    async with serving(answer) as url, browsing(tmp_path, "127.0.0.1") as place:
        await place.said("open", url=url)
        record = place.folder / "processes.json"
        pids = [row[0] for row in json.loads(await asyncio.to_thread(record.read_bytes))["processes"]]
        assert len(pids) > 3
        await place.said("stop")
        async with asyncio.timeout(10):
            while await asyncio.to_thread(alive, pids):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert not await asyncio.to_thread(record.exists)
        assert "Title: Form" in await place.said("open", url=url)
