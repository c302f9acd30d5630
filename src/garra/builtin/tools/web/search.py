"""Search the web by the searcher that the owner has."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from garra.builtin.tools.web.results import Challenged, Row, rows
from garra.core import outside
from garra.core.errors import ToolFailed, Unavailable
from garra.core.taint import Mark
from garra.sdk.ports import Clock
from garra.sdk.recent import Recent
from garra.sdk.searcher import Searcher
from garra.sdk.tool import Call, Result, ToolInfo, Update
from garra.sdk.web import Bounded, Searching, Visit, Web

LARGEST: Final = 1 << 20
ROOM: Final = 512 << 10
TEXT: Final = 400
"""Characters that are shown of what a result says."""
NOBODY: Final = (
    "Nobody is set to search the web. The owner gives a key (BRAVE_API_KEY or TAVILY_API_KEY), or the address of a "
    "SearXNG (SEARXNG_BASE_URL), or chooses one without a key: garra config set tools.web.search.provider duckduckgo"
)


class WebSearch:
    """The tool `web_search`."""

    info = ToolInfo(
        "web_search",
        "Search the web",
        "Search the web: titles, addresses and extracts.",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 1_000},
                "count": {"type": "integer", "minimum": 1, "maximum": 10},
                "freshness": {"type": "string", "enum": ["day", "week", "month", "year"]},
                "language": {"type": "string", "pattern": "^[A-Za-z]{2,3}(-[A-Za-z]{2,4})?$"},
                "country": {"type": "string", "pattern": "^[A-Za-z]{2}$"},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        groups=("group:web",),
    )

    def __init__(self, web: Web, bounded: Bounded, clock: Clock) -> None:
        self._web, self._clock = web, clock
        self._kept: Recent[tuple[Any, ...], tuple[float, tuple[Row, ...]]] = Recent(ROOM)

    async def execute(self, call: Call, _: Update) -> Result:
        settings = self._web.searching()
        if settings.chosen is None:
            raise ToolFailed(NOBODY)
        wanted = {**call.arguments, "count": call.arguments.get("count", settings.max_results)}
        tried: list[str] = []
        for searcher in (settings.chosen, *(() if settings.explicit else settings.others)):
            try:
                found, cached = await self._found(searcher, wanted, settings)
            except ToolFailed as fault:
                tried.append(fault.message)
                continue
            return told(searcher, wanted, found, cached=cached)
        raise ToolFailed("; ".join(tried))

    async def _found(
        self, searcher: Searcher, wanted: Mapping[str, Any], settings: Searching
    ) -> tuple[tuple[Row, ...], bool]:
        visit = asking(searcher, wanted, settings.timeout_s)
        key, now = (searcher.id, visit.url, visit.body, wanted["count"]), self._clock.monotonic()
        known = self._kept.get(key) if settings.cache_ttl_s > 0 else None
        if known is not None and now < known[0] and known[0] - now <= settings.cache_ttl_s:
            return known[1], True
        found = (await self._asked(searcher, visit, settings))[: wanted["count"]]
        if settings.cache_ttl_s > 0:
            size = sum(len(row.title) + len(row.url) + len(row.text) for row in found)
            self._kept.put(key, (now + settings.cache_ttl_s, found), 2 * size + 500)
        return found, False

    async def _asked(self, searcher: Searcher, visit: Visit, settings: Searching) -> tuple[Row, ...]:
        """Raises ToolFailed; what the searcher itself says of a fault is not shown to the model."""
        try:
            async with asyncio.timeout(settings.timeout_s), self._web.open(visit, searcher.id) as answer:
                status = answer.status
                data = await answer.read(LARGEST)
        except TimeoutError:
            raise ToolFailed(f"{searcher.name} did not answer within {settings.timeout_s:g} s") from None
        except Unavailable as gone:
            raise ToolFailed(f"{searcher.name}: {gone.message}") from None
        if status in (401, 403):
            raise ToolFailed(f"{searcher.name} refuses the search ({status}): check its key, or choose another")
        if status == 429:
            raise ToolFailed(f"{searcher.name} takes no more searches for now (429)")
        if status >= 300 or (status == 202 and searcher.reads == "duckduckgo"):
            raise ToolFailed(f"{searcher.name} cannot search now ({status})")
        try:
            return await asyncio.to_thread(rows, searcher, data)
        except Challenged as fault:
            raise ToolFailed(f"{searcher.name} cannot be asked now: {fault}") from None
        except ValueError as fault:
            raise ToolFailed(f"{searcher.name} cannot be understood: {fault}") from None


def asking(searcher: Searcher, wanted: Mapping[str, Any], wait_s: float) -> Visit:
    """The request to `searcher` for what is `wanted`; what it has no name for is not asked."""
    said: dict[str, Any] = dict(searcher.more)
    for name, value in wanted.items():
        if theirs := searcher.names.get(name):
            said[theirs] = min(value, searcher.most) if name == "count" else searcher.words.get(value, value)
    headers = {"accept": "application/json" if searcher.reads == "json" else "text/html", "user-agent": "Mozilla/5.0"}
    url = searcher.url.rstrip("/") + searcher.path
    if searcher.form == "json":
        headers["content-type"] = "application/json"
        return Visit(url, searcher.method, headers, msgspec.json.encode(said), 1, wait_s, searcher.key)
    return Visit(f"{url}?{urlencode(said)}", searcher.method, headers, None, 1, wait_s, searcher.key)


def told(searcher: Searcher, wanted: Mapping[str, Any], found: tuple[Row, ...], *, cached: bool) -> Result:
    mark = Mark("web", f"search by {searcher.name}")
    if not found:
        return Result.of(
            f"{searcher.name} found nothing.", {"provider": searcher.id, "count": 0, "results": []}, (mark,)
        )
    lines = [_line(number, row) for number, row in enumerate(found, 1)]
    listed = [{"title": row.title, "url": row.url, "description": row.text, "age": row.age} for row in found]
    details = {
        "query": wanted["query"],
        "provider": searcher.id,
        "count": len(found),
        "results": listed,
        "externalContent": {"untrusted": True, "source": "web_search", "provider": searcher.id, "wrapped": True},
        **({"cached": True} if cached else {}),
    }
    return Result.of(outside.wrap("\n\n".join(lines), mark), details, (mark,))


def _line(number: int, row: Row) -> str:
    age = f" ({outside.name(row.age, 40)})" if row.age else ""
    text = outside.name(row.text, TEXT)
    return f"{number}. {outside.name(row.title, 200)}{age}\n   {row.url}" + (f"\n   {text}" if text else "")
