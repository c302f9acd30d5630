"""Drives Chromium, as a program of its own: `python -m garra.builtin.tools.browser.worker`.

The first line of standard input is JSON: `{"executable", "headless", "sandbox", "proxy", "folder", "most", "idle",
"limit"}`. Then each line asks `{"id", "session", "op", …}` and is answered by `{"id", "ok": …}` or `{"id", "error",
"outside"}`, in whatever order they are done. It ends with its input.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from garra.builtin.tools.browser.pages import Downloads, Session, Tab

ARGS: Final = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--dns-prefetch-disable",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
STEP_MS: Final = 10_000
PAGE_MS: Final = 25_000
WHOLE_S: Final = 60.0
WAIT_MS: Final = 20_000
TEXT: Final = 200_000


class Driver:
    """The browser and its sessions."""

    def __init__(self, browser: Any, asked: Mapping[str, Any]) -> None:
        self._browser, self._asked = browser, asked
        self._folder = Path(asked["folder"])
        self._downloads = Downloads(self._folder / "downloads", asked["limit"])
        self._sessions: dict[str, Session] = {}
        self._making = asyncio.Lock()
        self._ops: dict[str, Callable[[Session, Mapping[str, Any]], Awaitable[dict[str, Any]]]] = {
            "tabs": self._tabs,
            "open": self._open,
            "focus": self._focus,
            "close": self._close,
            "navigate": self._navigate,
            "snapshot": self._snapshot,
            "act": self._act,
            "screenshot": self._screenshot,
            "console": self._console,
        }

    async def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Never raises but for cancellation."""
        error = importlib.import_module("playwright.async_api").Error
        try:
            async with asyncio.timeout(WHOLE_S):
                session = await self._session(str(asked["session"]))
                async with session.lock:
                    await session.trim(self._asked["idle"])
                    found = await self._ops[asked["op"]](session, asked)
                    await session.trim(self._asked["idle"])
                    await self._save(str(asked["session"]), session)
                    fetched, session.fetched = session.fetched, []
                    return {"ok": {**found, "downloads": fetched}}
        except LookupError as fault:
            return {"error": str(fault.args[0]) if fault.args else "no such thing"}
        except TimeoutError:
            return {"error": f"not done within {WHOLE_S:g} s"}
        except error as fault:
            return {"error": str(fault).split("\n", 1)[0][:300], "outside": True}

    async def _session(self, key: str) -> Session:
        async with self._making:
            if key not in self._sessions:
                state = self._state(key)
                known = str(state) if await asyncio.to_thread(state.is_file) else None
                context = await self._browser.new_context(
                    service_workers="block", accept_downloads=True, storage_state=known, locale="en-US"
                )
                context.set_default_timeout(STEP_MS)
                context.set_default_navigation_timeout(PAGE_MS)
                self._sessions[key] = Session(context, self._asked["most"], self._downloads)
            return self._sessions[key]

    def _state(self, key: str) -> Path:
        """Where the cookies of a session are kept."""
        return self._folder / "sessions" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"

    async def _save(self, key: str, session: Session) -> None:
        await session.context.storage_state(path=str(self._state(key)))

    async def _tabs(self, session: Session, _: Mapping[str, Any]) -> dict[str, Any]:
        listed = [
            {"id": tab.id, "url": tab.page.url, "title": await tab.page.title(), "current": tab.id == session.current}
            for tab in list(session.tabs.values())
        ]
        return {"tabs": listed}

    async def _open(self, session: Session, asked: Mapping[str, Any]) -> dict[str, Any]:
        tab = await session.open()
        return await self._gone(tab, asked)

    async def _navigate(self, session: Session, asked: Mapping[str, Any]) -> dict[str, Any]:
        tab = session.find(asked["tab"]) if session.tabs else await session.open()
        return await self._gone(tab, asked)

    async def _gone(self, tab: Tab, asked: Mapping[str, Any]) -> dict[str, Any]:
        answer = await tab.page.goto(asked["url"], wait_until="domcontentloaded") if asked["url"] else None
        facts = await _facts(tab)
        return {**facts, "status": answer.status if answer else None, "snapshot": await _seen(tab)}

    async def _focus(self, session: Session, asked: Mapping[str, Any]) -> dict[str, Any]:
        tab = session.find(asked["tab"])
        await tab.page.bring_to_front()
        return await _facts(tab)

    async def _close(self, session: Session, asked: Mapping[str, Any]) -> dict[str, Any]:
        tab = session.find(asked["tab"])
        await session.close(tab)
        return {"tab": tab.id, "closed": True}

    async def _snapshot(self, session: Session, asked: Mapping[str, Any]) -> dict[str, Any]:
        tab = session.find(asked["tab"])
        return {**await _facts(tab), "snapshot": await _seen(tab)}

    async def _screenshot(self, session: Session, asked: Mapping[str, Any]) -> dict[str, Any]:
        tab = session.find(asked["tab"])
        if asked.get("ref"):
            data = await (await _element(tab, asked["ref"])).screenshot(type="jpeg", quality=70)
        else:
            data = await tab.page.screenshot(type="jpeg", quality=70, full_page=bool(asked.get("full")))
        return {**await _facts(tab), "data": base64.b64encode(data).decode(), "mime": "image/jpeg"}

    async def _console(self, session: Session, asked: Mapping[str, Any]) -> dict[str, Any]:
        tab = session.find(asked["tab"])
        return {**await _facts(tab), "lines": list(tab.console)}

    async def _act(self, session: Session, asked: Mapping[str, Any]) -> dict[str, Any]:
        tab = session.find(asked["tab"])
        await _acted(tab, asked)
        await tab.page.wait_for_load_state("domcontentloaded")
        return await _facts(tab)


async def _acted(tab: Tab, asked: Mapping[str, Any]) -> None:
    text, ref = str(asked.get("text", "")), str(asked.get("ref", ""))
    match asked["kind"]:
        case "click":
            await (await _element(tab, ref)).click(click_count=2 if asked.get("double") else 1)
        case "hover":
            await (await _element(tab, ref)).hover()
        case "type":
            await (await _element(tab, ref)).fill(text)
            if asked.get("submit"):
                await (await _element(tab, ref)).press("Enter")
        case "press":
            await ((await _element(tab, ref)).press(text) if ref else tab.page.keyboard.press(text))
        case "select":
            await (await _element(tab, ref)).select_option(list(asked.get("values", ())) or text)
        case "wait":
            await _waited(tab, text, float(asked.get("time", 0)))


async def _waited(tab: Tab, text: str, time_ms: float) -> None:
    if text:
        await tab.page.get_by_text(text).first.wait_for(state="visible", timeout=WAIT_MS)
    else:
        await tab.page.wait_for_timeout(min(time_ms, WAIT_MS))


async def _element(tab: Tab, ref: str) -> Any:
    """Raises LookupError where the last snapshot has no such element, or the page has lost it."""
    if not ref:
        raise LookupError("name the element by its ref of the last snapshot, such as e12")
    found = tab.page.locator(f"aria-ref={ref}")
    if not await found.count():
        raise LookupError(f"there is no {ref} on this page (any more): take a new snapshot")
    return found


async def _facts(tab: Tab) -> dict[str, Any]:
    return {"tab": tab.id, "url": tab.page.url, "title": await tab.page.title()}


async def _seen(tab: Tab) -> str:
    return str(await tab.page.aria_snapshot(mode="ai", timeout=STEP_MS))[:TEXT]


async def drive() -> None:
    asked = json.loads(await asyncio.to_thread(sys.stdin.buffer.readline))
    playwright = importlib.import_module("playwright.async_api")
    async with playwright.async_playwright() as started:
        browser = await started.chromium.launch(
            executable_path=asked["executable"],
            headless=asked["headless"],
            chromium_sandbox=asked["sandbox"],
            downloads_path=str(Path(asked["folder"]) / "downloads"),
            args=[*ARGS, f"--proxy-server={asked['proxy']}"],
            env=asked["env"],
        )
        say({"id": 0, "ok": {"version": browser.version}})
        driver = Driver(browser, asked)

        async def answered(line: bytes) -> None:
            wanted = json.loads(line)
            say({"id": wanted["id"], **await driver.answer(wanted)})

        async with asyncio.TaskGroup() as group:
            while line := await asyncio.to_thread(sys.stdin.buffer.readline):
                group.create_task(answered(line))
        await browser.close()


def say(body: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(body) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(drive())
