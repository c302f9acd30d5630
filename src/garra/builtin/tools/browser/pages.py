"""The tabs of one session, in a browser context of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

SAVED: Final = 100
"""Lines of a page's console that are kept."""
HELD: Final = ("http://", "https://", "about:blank")
PERMISSIONS: Final[tuple[str, ...]] = ()


@dataclass(slots=True)
class Tab:
    """One page. `used` is when it was last asked for, by the loop's clock."""

    id: str
    page: Any
    used: float
    console: deque[str] = field(default_factory=lambda: deque(maxlen=SAVED))


class Session:
    """Made by `opened`. `most` tabs at once; the one not used for longest makes room."""

    def __init__(self, context: Any, most: int, downloads: Downloads) -> None:
        self.context, self.most, self.downloads = context, most, downloads
        self.tabs: dict[str, Tab] = {}
        self.current = ""
        self.lock = asyncio.Lock()
        self.fetched: list[dict[str, Any]] = []
        self._number = 0
        context.on("page", self._appeared)

    def _appeared(self, page: Any) -> None:
        self._number += 1
        tab = Tab(f"t{self._number}", page, asyncio.get_running_loop().time())
        self.tabs[tab.id] = tab
        page.on("close", lambda _: self.tabs.pop(tab.id, None))
        page.on("console", lambda said: tab.console.append(f"{said.type}: {said.text[:500]}"))
        page.on("pageerror", lambda error: tab.console.append(f"error: {str(error)[:500]}"))
        page.on("download", self._download)

    async def _download(self, download: Any) -> None:
        found = await self.downloads.keep(download)
        if found:
            self.fetched.append(found)

    async def open(self) -> Tab:
        """A new tab, after room was made for it."""
        while len(self.tabs) >= self.most:
            await self.close(min(self.tabs.values(), key=lambda tab: tab.used))
        page = await self.context.new_page()
        tab = next(each for each in self.tabs.values() if each.page is page)
        self.current = tab.id
        return tab

    async def trim(self, idle_s: float) -> None:
        """Close what pages opened beyond the limit, what nobody used for `idle_s`, and what is no page of the web."""
        now = asyncio.get_running_loop().time()
        for tab in sorted(self.tabs.values(), key=lambda each: each.used):
            strange = not tab.page.url.startswith(HELD)
            if strange or len(self.tabs) > self.most or now - tab.used > idle_s:
                await self.close(tab)

    async def close(self, tab: Tab) -> None:
        self.tabs.pop(tab.id, None)
        await tab.page.close()

    def find(self, wanted: str) -> Tab:
        """The tab called `wanted`, else the current one, else the newest. Raises LookupError."""
        tab = self.tabs.get(wanted or self.current) or (None if wanted else next(reversed(self.tabs.values()), None))
        if tab is None:
            raise LookupError(f"there is no tab {wanted}" if wanted else "no tab is open: open one first")
        tab.used = asyncio.get_running_loop().time()
        self.current = tab.id
        return tab


class Downloads:
    """Files that pages give: into `folder`, `limit` bytes each."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._number = 0

    async def keep(self, download: Any) -> dict[str, Any] | None:
        """The file's facts once it is there; None where it failed or is too large."""
        name = str(download.suggested_filename)[:200]
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch(download))
            path = await _path(download)
            watch.cancel()
        if path is None:
            return {"name": name, "error": f"not kept: it failed, or is over {self._limit} bytes"}
        size = (await asyncio.to_thread(path.stat)).st_size
        if size > self._limit:
            await download.delete()
            return {"name": name, "error": f"not kept: it is over {self._limit} bytes"}
        self._number += 1
        kept = self._folder / f"kept-{self._number}"
        await asyncio.to_thread(path.rename, kept)
        return {"name": name, "file": kept.name, "size": size, "url": str(download.url)[:2_000]}

    async def _watch(self, download: Any) -> None:
        """Stop it when the folder has grown too much."""
        while await asyncio.to_thread(_size, self._folder) <= 2 * self._limit:  # noqa: ASYNC110 - a file grows
            await asyncio.sleep(0.2)
        await download.cancel()


async def _path(download: Any) -> Path | None:
    return None if await download.failure() else Path(await download.path())


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
