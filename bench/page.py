"""How fast the web page is, in the system's Chromium: a first paint, and lists too long to look through.

    PYTHONPATH=. .venv/bin/python -m bench.page [--sessions 1000] [--messages 10000] [--mails 10000]

Needs the packages of the tests. First a gateway with a short conversation: each page in a fresh browser, with the
processor four times slower, over DevTools: bytes that came, first contentful paint, when the page was usable (its
heading there, nothing of it missing, no task of more than 50 ms after it), time blocked by longer ones, how much the
layout shifted. Then a gateway with very long lists: frames while a list is scrolled, keys typed into a search, messages
read while one goes up. The state is made once (4 GB) and kept in `bench/.state/page`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.e2e.browser import Tab, browsing
from tests.e2e.resident import TOKEN, Resident, strict_model
from tests.e2e.test_web_pages import places

from bench import page_state
from garra.testing.model_server import Say

STATE = Path(__file__).parent / ".state" / "page"
SLOWER = 4
QUIET_MS = 2_000
WATCH = """() => {
  window.seen = { long: [], shift: 0, paint: 0 };
  const watch = (type, take) =>
    new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
  watch('longtask', (each) => seen.long.push([each.startTime, each.duration]));
  watch('layout-shift', (each) => { if (!each.hadRecentInput) seen.shift += each.value; });
  watch('paint', (each) => { if (each.name === 'first-contentful-paint') seen.paint = each.startTime; });
}"""
READY = """() => document.querySelector('main h1') && !document.querySelector('.skel') ? performance.now() : 0"""
SCROLL = """async ([by, steps]) => {
  const view = document.querySelector('.content');
  const frames = [];
  window.seen.long = [];
  let last = performance.now();
  for (let step = 0; step < steps; step++) {
    view.scrollTop += by;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  await new Promise((done) => setTimeout(done, 300));
  const rows = document.querySelectorAll('[data-row]').length;
  return { frames, long: window.seen.long, rows };
}"""


async def first(url: str, name: str) -> dict[str, Any]:
    """One page in a browser that was never here, on a processor that is slower."""
    async with browsing() as tab:
        got = await tab.context.new_cdp_session(tab.page)
        await got.send("Network.enable")
        sizes: list[float] = []
        got.on("Network.loadingFinished", lambda done: sizes.append(done["encodedDataLength"]))
        await got.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        await tab.page.add_init_script(f"({WATCH})()")
        await tab.page.goto(f"{url}/{name}#token={TOKEN}")
        ready = await (await tab.page.wait_for_function(READY, polling="raf")).json_value()
        await tab.page.wait_for_timeout(QUIET_MS)
        seen = await tab.page.evaluate("seen")
        late = [start + length for start, length in seen["long"]]
        before = [length - 50 for start, length in seen["long"] if start < max(ready, seen["paint"]) + QUIET_MS]
        return {
            "kib": round(sum(sizes) / 1024, 1),
            "paint_ms": round(seen["paint"]),
            "usable_ms": round(max([ready, seen["paint"], *late])),
            "blocked_ms": round(sum(before)),
            "longest_ms": round(max([0, *(length for _, length in seen["long"])])),
            "shift": round(seen["shift"], 4),
        }


def smooth(got: dict[str, Any]) -> dict[str, Any]:
    frames = sorted(got["frames"])
    return {
        "frames": len(frames),
        "p50_ms": round(frames[len(frames) // 2], 1),
        "p95_ms": round(frames[int(len(frames) * 0.95)], 1),
        "max_ms": round(frames[-1], 1),
        "long": len(got["long"]),
        "longest_ms": round(max([0, *(length for _, length in got["long"])])),
        "rows": got["rows"],
    }


async def scrolled(tab: Tab, by: int, steps: int = 240) -> dict[str, Any]:
    return smooth(await tab.page.evaluate(SCROLL, [by, steps]))


async def typed(tab: Tab, text: str, done: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
    """How long a search takes from its last key to what it shows, and how long the main thread was held."""
    await tab.page.evaluate("window.seen.long = []")
    await tab.page.keyboard.type(text, delay=40)
    began = perf_counter()
    await done()
    shown = perf_counter() - began
    long = await tab.page.evaluate("seen.long")
    return {
        "shown_ms": round(shown * 1000),
        "long": len(long),
        "longest_ms": round(max([0, *(each for _, each in long)])),
    }


class Told(dict[str, Any]):
    """Figures, each told as it comes."""

    def __setitem__(self, name: str, figures: Any) -> None:
        super().__setitem__(name, figures)
        print(f"{name:18}", json.dumps(figures), flush=True)


async def lists(garra: Resident) -> None:
    """The long ones, at the machine's own speed."""
    found = Told()
    async with browsing() as tab:
        await tab.page.add_init_script(f"({WATCH})()")
        url = f"http://127.0.0.1:{garra.port}"
        for name, row in (("inbox", ".mail"), ("sessions", ".talk")):
            began = perf_counter()
            await tab.page.goto(f"{url}/{name}#token={TOKEN}")
            await tab.page.locator(row).first.wait_for()
            found[f"{name} opened"] = {"ms": round((perf_counter() - began) * 1000)}
            await tab.page.wait_for_timeout(1_000)
            found[f"{name} scrolled"] = await scrolled(tab, 300)
            await tab.page.evaluate("document.querySelector('.content').scrollTop = 0")
            await tab.page.locator("input[type=search]").first.focus()
            wanted = "Message 77" if name == "inbox" else "conversation 77"
            found[f"{name} searched"] = await typed(tab, wanted, tab.page.locator(row, has_text=wanted).first.wait_for)
        began = perf_counter()
        await tab.page.goto(f"{url}/chat/agent%3Amain%3Atalk-0000")
        await tab.page.locator(".bot").last.wait_for()
        found["chat opened"] = {"ms": round((perf_counter() - began) * 1000)}
        await tab.page.wait_for_timeout(1_000)
        up = await scrolled(tab, -400, 400)
        heap = await tab.page.evaluate("Math.round((performance.memory?.usedJSHeapSize ?? 0) / 1048576)")
        found["chat up"] = {**up, "heap_mib": heap}
        await tab.page.evaluate("document.activeElement.blur()")
        await tab.page.keyboard.press("/")
        await tab.page.wait_for_selector("#find")
        await tab.page.locator(".hit").first.wait_for()
        hit = tab.page.locator(".hit", has_text="part 9999")
        found["search: words"] = await typed(tab, "part 9999", hit.first.wait_for)
        await tab.page.fill("#find", "")
        await tab.page.focus("#find")
        none = tab.page.get_by_text("Nothing found")
        found["search: nothing"] = await typed(tab, "zebracrossing", none.first.wait_for)
        found["faults"] = {"seen": tab.faults}


async def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--sessions", type=int, default=1_000)
    asked.add_argument("--messages", type=int, default=10_000)
    asked.add_argument("--mails", type=int, default=10_000)
    asked.add_argument("--only", choices=("first", "lists"))
    given = asked.parse_args()
    STATE.mkdir(parents=True, exist_ok=True)
    async with strict_model() as model:
        if given.only != "lists":
            await firsts(model)
        if given.only != "first":
            await longs(model, given)


async def firsts(model: Any) -> None:
    root = STATE / "short"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    garra = Resident(root, model.url)
    await garra.start()
    try:
        async with garra.client() as client:
            for number in range(12):
                model.then(Say(f"Answer **{number}**.\n\n```\nwalls 17,900\n```"))
                await client.say(f"question {number}")
        for name in (place.strip("/") for place in places()):
            print(f"{name:10}", json.dumps(await first(f"http://127.0.0.1:{garra.port}", name)), flush=True)
    finally:
        garra.kill()
        await garra.gone()


async def longs(model: Any, given: Any) -> None:
    root = STATE / f"long-{given.sessions}-{given.messages}-{given.mails}"
    fresh = not (root / "made").exists()
    if fresh:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
    garra = Resident(root, model.url)
    if fresh:
        await page_state.made(garra.state, given.sessions, given.messages, given.mails)
        (root / "made").touch()
    await garra.start()
    try:
        await lists(garra)
    finally:
        garra.kill()
        await garra.gone()


if __name__ == "__main__":
    asyncio.run(main())
