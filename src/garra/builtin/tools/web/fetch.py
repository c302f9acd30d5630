"""Fetch a page: what it is about, as Markdown or text, marked as coming from outside."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, Final

import msgspec

from garra.core import outside
from garra.core.errors import ToolFailed, Unavailable
from garra.core.taint import Mark
from garra.core.value import frozen
from garra.sdk.ports import Clock
from garra.sdk.recent import Recent
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update
from garra.sdk.web import Bounded, Fetching, Visit, Web

READER: Final = "garra.builtin.tools.web.page"
ROOM: Final = 2 << 20
"""Bytes of pages that are kept to be read again."""
SLOW_S: Final = 5.0
MOST: Final = 38_000
"""Characters; what a result may have at most, with the marks around it."""
FAILED: Final = 4_000
"""Characters that are shown of a page that says why there is none."""
AGENT: Final = "Mozilla/5.0 (compatible; garra)"


@frozen
class Page:
    """What was fetched. `raw` counts its characters, `partial`: there were more bytes than are read."""

    url: str
    status: int
    kind: str
    title: str
    text: str
    extractor: str
    partial: bool
    fetched_ms: int
    until: float


class WebFetch:
    """The tool `web_fetch`."""

    info = ToolInfo(
        "web_fetch",
        "Fetch a page",
        "Fetch a web page or file as text (no JavaScript, no logins).",
        {
            "type": "object",
            "properties": {
                "url": {"type": "string", "minLength": 1, "maxLength": 4_000},
                "extractMode": {"type": "string", "enum": ["markdown", "text"]},
                "maxChars": {"type": "integer", "minimum": 100},
            },
            "required": ["url"],
            "additionalProperties": False,
        },
        groups=("group:web",),
        effects=("sends",),
    )

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        """An address that the model has made up may carry words of the conversation to whoever owns it."""
        return () if call.context.seen(call.arguments["url"]) else self.info.effects

    def __init__(self, web: Web, bounded: Bounded, clock: Clock) -> None:
        self._web, self._bounded, self._clock = web, bounded, clock
        self._kept: Recent[tuple[Any, ...], Page] = Recent(ROOM)

    async def execute(self, call: Call, update: Update) -> Result:
        settings = self._web.fetching()
        url = call.arguments["url"].strip()
        slow = asyncio.get_running_loop().call_later(SLOW_S, update, "Fetching page content...")
        began = self._clock.monotonic()
        try:
            page, cached = await self._page(url, settings)
        finally:
            slow.cancel()
        mode = call.arguments.get("extractMode", "markdown")
        most = min(call.arguments.get("maxChars", settings.max_chars), settings.max_chars_cap, MOST)
        took_ms = round((self._clock.monotonic() - began) * 1000)
        return told(
            page, {"url": url, "extractMode": mode, "tookMs": took_ms, **({"cached": True} if cached else {})}, most
        )

    async def _page(self, url: str, settings: Fetching) -> tuple[Page, bool]:
        """The page, and whether it was kept from before. Raises ToolFailed."""
        sent = headers(settings)
        key = (url, sent["user-agent"], settings.readability, settings.max_response_bytes)
        now = self._clock.monotonic()
        known = self._kept.get(key) if settings.cache_ttl_s > 0 else None
        if known is not None and now < known.until and known.until - now <= settings.cache_ttl_s:
            return known, True
        try:
            async with asyncio.timeout(settings.timeout_s):
                page = await self._fetched(url, sent, settings)
        except TimeoutError:
            raise ToolFailed(f"{url}: not there within {settings.timeout_s:g} s") from None
        except Unavailable as gone:
            raise ToolFailed(refused(gone, "tools.web.fetch.ssrfPolicy.allowedHostnames")) from None
        if settings.cache_ttl_s > 0 and page.status < 400:
            self._kept.put(key, page, 2 * len(page.text) + 500)
        return page, False

    async def _fetched(self, url: str, sent: dict[str, str], settings: Fetching) -> Page:
        visit = Visit(url, headers=sent, redirects=settings.max_redirects, wait_s=settings.timeout_s)
        async with self._web.open(visit) as answer:
            kind, charset = kind_of(answer.headers.get("content-type", ""))
            data, partial = bytearray(), False
            async for chunk in answer.chunks():
                data += chunk
                if partial := len(data) > settings.max_response_bytes:
                    break
            status, final = answer.status, answer.url
        body = bytes(data[: settings.max_response_bytes])
        title, text, extractor = await self._read(body, kind, charset, final, readability=settings.readability)
        now = self._clock.monotonic()
        return Page(
            final, status, kind, title, text, extractor, partial, self._clock.now_ms(), now + settings.cache_ttl_s
        )

    async def _read(
        self, data: bytes, kind: str, charset: str, final: str, *, readability: bool
    ) -> tuple[str, str, str]:
        """(title, text, how it was found). Raises ToolFailed for what is no text, Unavailable."""
        if kind in ("text/html", "application/xhtml+xml") or (not kind and data.lstrip()[:1] == b"<"):
            asked = {"base": final, "charset": charset, "readability": readability}
            said = await self._bounded.run(READER, json.dumps(asked).encode() + b"\n" + data)
            found = msgspec.json.decode(said)
            return found["title"], found["text"], found["extractor"]
        if kind == "application/pdf" or data.startswith(b"%PDF-"):
            raise ToolFailed(f"{final} is a PDF: read it with the tool pdf")
        if kind.startswith("image/"):
            raise ToolFailed(f"{final} is a picture: look at it with the tool view_image")
        if b"\0" in data[:8_192]:
            raise ToolFailed(f"{final} is no text ({kind or 'of an unknown kind'}, {len(data)} bytes)")
        return "", await asyncio.to_thread(as_text, data, kind, charset), "raw"


def headers(settings: Fetching) -> dict[str, str]:
    """What is sent; what the owner adds is added by the door."""
    return {
        "accept": "text/markdown, text/html;q=0.9, application/json;q=0.8, text/*;q=0.7, */*;q=0.1",
        "accept-language": "en-US,en;q=0.9",
        "user-agent": settings.user_agent or AGENT,
    }


def kind_of(told: str) -> tuple[str, str]:
    """(kind, charset) of a content type."""
    kind, *more = told.split(";")
    named = (part.strip().lower().partition("=") for part in more)
    charset = next((value.strip("\"' ") for name, _, value in named if name == "charset"), "")
    return kind.strip().lower()[:100], charset[:40]


def as_text(data: bytes, kind: str, charset: str) -> str:
    """Blocks for as long as a file of its size needs."""
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return msgspec.json.format(data, indent=1).decode("utf-8", "replace")
        except (msgspec.DecodeError, RecursionError):
            pass  # a part of a file, or a slip: as it stands
    try:
        return data.decode(charset or "utf-8-sig", "replace")
    except LookupError:
        return data.decode("utf-8-sig", "replace")


def plain(written: str) -> str:
    """Markdown of ours as plain text: links by their words, no marks."""
    text = re.sub(r"\[([^\[\]]*)\]\([^()\s]*\)", r"\1", written)
    text = re.sub(r"^#{1,6} ", "", text, flags=re.M)
    return re.sub(r"\*\*|~~|`", "", text)


def told(page: Page, more: dict[str, Any], most: int) -> Result:
    """The page as the model reads it, and its facts for programs, as the original names them."""
    text = plain(page.text) if more["extractMode"] == "text" else page.text
    room = min(most, FAILED) if page.status >= 400 else most
    truncated = page.partial or len(text) > room
    mark = Mark("web", page.url)
    shown = (f"Title: {outside.name(page.title, 256)}\n\n" if page.title else "") + text[:room]
    wrapped = outside.wrap(shown, mark)
    line = f"{page.status} {page.kind or 'unknown'}"
    if len(text) > room:
        line += f"; {room} of {len(text)} characters"
    if page.partial:
        line += "; only its beginning was read, it is too large"
    details = {
        **more,
        "finalUrl": page.url,
        "status": page.status,
        "contentType": page.kind,
        "title": page.title[:256],
        "extractor": page.extractor,
        "externalContent": {"untrusted": True, "source": "web_fetch", "wrapped": True},
        "truncated": truncated,
        "length": len(wrapped),
        "rawLength": len(text),
        "fetchedAt": page.fetched_ms,
    }
    return Result.of(f"[{line}]\n{wrapped}", details, (mark,))


def refused(gone: Unavailable, key: str) -> str:
    """Why a place was not reached; for one that is not public, how its owner opens it."""
    if (gone.details or {}).get("private"):
        return f"{gone.message}. Only the owner can open it, by listing the host in {key}."
    return gone.message
