"""How a browser gets into the web page, and what it may load there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from garra.testing.model_server import Say
from tests.e2e.browser import browsing
from tests.e2e.resident import TOKEN, Resident, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.needs("chromium"), pytest.mark.timeout(120)]

FAR = "203.0.113.7"
CLOSES = """window.WebSocket = class extends WebSocket {
  constructor(...of) {
    super(...of);
    this.addEventListener('close', (end) => (sessionStorage.closes = `${sessionStorage.closes ?? ''} ${end.code}`));
  }
}"""
"""Keeps the codes with which connections were closed."""


@asynccontextmanager
async def reverse_proxy(to: int) -> AsyncIterator[int]:
    """A proxy whose callers come from far away, as it says itself; one request a connection, or one socket."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        host = re.search(r"(?im)^host: (.*)\r$", head)
        more = f"X-Forwarded-For: {FAR}\r\nX-Forwarded-Host: {host[1] if host else ''}\r\nX-Forwarded-Proto: http\r\n"
        if "upgrade: websocket" not in head.lower():
            head = re.sub(r"(?im)^connection: .*\r\n", "", head)
            more += "Connection: close\r\n"
        up, out = await asyncio.open_connection("127.0.0.1", to)
        out.write(head.removesuffix("\r\n").encode("latin-1") + more.encode() + b"\r\n")
        await asyncio.gather(_pump(reader, out), _pump(up, writer))

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        server.close()


async def _pump(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65_536):
            to.write(data)
            await to.drain()
    except ConnectionError:
        pass
    finally:
        to.close()


@pytest.mark.req("UI-03")
async def test_a_new_browser_from_afar_is_approved_once_and_then_needs_no_token(tmp_path: Path) -> None:
    auth = {"mode": "token", "token": TOKEN}
    async with strict_model() as model:
        garra = Resident(tmp_path, model.url)
        garra.config["gateway"] = {"port": garra.port, "auth": auth, "trustedProxies": ["127.0.0.1"]}
        garra.write()
        await garra.start()
        try:
            async with reverse_proxy(garra.port) as port, browsing() as tab:
                await tab.page.add_init_script(CLOSES)
                await tab.page.goto(f"http://127.0.0.1:{port}/chat")
                await tab.sees("This gateway wants its secret")
                await tab.page.fill("#secret", "wrong-token-000000")
                await tab.page.click("text=Enter")
                await tab.sees("That is not it")
                assert await tab.unlabelled() == []
                await tab.page.fill("#secret", TOKEN)
                await tab.page.click("text=Enter")
                await tab.sees("Let this browser in")
                await tab.page.wait_for_function("sessionStorage.closes?.endsWith(' 1008')")
                command = await tab.text("garra-code pre")
                assert await tab.unlabelled() == []
                code, _, err = await garra.run(*command.split()[1:])
                assert code == 0, err
                await tab.page.wait_for_selector("chat-composer")
                assert await tab.page.evaluate("Object.keys(sessionStorage)") == ["closes"]
                assert await tab.page.evaluate("localStorage['garra.deviceToken'].length") > 20
                await tab.page.reload()
                await tab.page.wait_for_selector("chat-composer")
                model.then(Say("heard afar"))
                await tab.say("from afar")
                await tab.sees("heard afar", ".bot:not(.live)")
                kept = await tab.page.evaluate("JSON.stringify(localStorage)")
                assert TOKEN not in kept
        finally:
            garra.kill()
            await garra.gone()


@pytest.mark.req("UI-03")
async def test_the_token_in_the_address_is_used_once_and_taken_out(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as garra, browsing() as tab:
        await tab.open(garra, "/chat")
        await tab.page.wait_for_selector("chat-composer")
        assert tab.page.url.endswith("/chat")
        assert TOKEN not in await tab.page.evaluate("JSON.stringify([localStorage, sessionStorage, history.state])")
        await tab.page.goto(f"http://127.0.0.1:{garra.port}/")
        await tab.sees("No message yet")
        assert tab.page.url.endswith("/inbox")
        assert tab.faults == []


async def test_the_page_lives_below_a_base_path_and_loads_nothing_foreign(tmp_path: Path) -> None:
    async with strict_model() as model:
        garra = Resident(tmp_path, model.url)
        garra.config["gateway"] |= {"controlUi": {"basePath": "/garra"}}
        garra.write()
        await garra.start()
        try:
            async with browsing(color_scheme="dark") as tab:
                asked: list[str] = []
                tab.page.on("request", lambda request: asked.append(request.url))
                await tab.open(garra, "/garra/chat")
                model.then(Say("hello to you"))
                await tab.say("hello")
                await tab.sees("hello to you", ".bot:not(.live)")
                assert {url.split("/garra/")[0] for url in asked} == {f"http://127.0.0.1:{garra.port}"}
                refused = await tab.page.evaluate(
                    "() => { try { const s = document.createElement('script'); s.textContent = 'window.hit = 1';"
                    " document.body.append(s) } catch {} return window.hit ?? null }"
                )
                assert refused is None
                assert (await garra.get("/assets/none.js"))[0] == 404
        finally:
            garra.kill()
            await garra.gone()


async def test_a_phone_has_tabs_and_the_reader_chooses_language_and_colours(tmp_path: Path) -> None:
    phone = browsing(width=390, height=844, locale="zh-CN")
    async with strict_model() as model, resident(tmp_path, model.url) as garra, phone as tab:
        await tab.open(garra, "/inbox")
        await tab.sees("还没有消息")
        await tab.page.click(".tabs >> text=对话")
        await tab.page.wait_for_selector("chat-composer")
        wide = await tab.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390
        await tab.page.click(".tabs >> text=更多")
        await tab.page.select_option("#theme", "dark")
        assert await tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 21, 19)"
        assert await tab.unlabelled() == []
        await tab.page.select_option("#language", "en")
        await tab.sees("Chat", ".tabs")
        assert tab.faults == []
