"""Where a picture or a document is taken from: the workspace, a handle of this conversation, or an address."""

from __future__ import annotations

import asyncio
from typing import Final

from garra.core.errors import ToolFailed, Unavailable
from garra.core.taint import Mark
from garra.core.value import frozen
from garra.sdk.sight import Shelf
from garra.sdk.tool import Call
from garra.sdk.web import Visit, Web

HANDLE: Final = "media://"
AGENT: Final = "Mozilla/5.0 (compatible; garra)"


@frozen
class Taken:
    """`marks` tell that it came from outside."""

    name: str
    data: bytes
    marks: tuple[Mark, ...] = ()


async def take(call: Call, place: str, limit: int, *, web: Web, shelf: Shelf) -> Taken:
    """At most `limit` bytes of what stands at `place`. Raises ToolFailed."""
    if place.startswith(("http://", "https://")):
        return await _fetched(place, limit, web)
    if place.startswith(HANDLE):
        data = await shelf.read(call.context.session_key, place, limit)
        return Taken(place, data, (Mark("file", place),))
    if "://" in place or place.startswith("data:"):
        raise ToolFailed(f"{place[:80]}: give a file of the workspace, an http(s) address, or a media:// handle")
    return Taken(place, await asyncio.to_thread(call.context.files.read, place, limit))


async def _fetched(url: str, limit: int, web: Web) -> Taken:
    settings = web.fetching()
    visit = Visit(url, headers={"user-agent": settings.user_agent or AGENT}, redirects=settings.max_redirects)
    data = bytearray()
    try:
        async with asyncio.timeout(settings.timeout_s), web.open(visit) as answer:
            if answer.status >= 300:
                raise ToolFailed(f"{url} answers {answer.status}")
            async for chunk in answer.chunks():
                data += chunk
                if len(data) > limit:
                    raise ToolFailed(f"{url} is larger than {limit} bytes")
            return Taken(answer.url, bytes(data), (Mark("web", answer.url),))
    except TimeoutError:
        raise ToolFailed(f"{url}: not there within {settings.timeout_s:g} s") from None
    except Unavailable as gone:
        key = "tools.web.fetch.ssrfPolicy.allowedHostnames"
        more = (
            f". Only the owner can open it, by listing the host in {key}."
            if (gone.details or {}).get("private")
            else ""
        )
        raise ToolFailed(gone.message + more) from None
