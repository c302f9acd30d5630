"""Files that tools took from outside: in the media folder, found again only by the session that took them."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict

from garra.core.errors import GarraError, ToolFailed
from garra.core.ids import SessionKey
from garra.domains.delivery.media import MediaRoot
from garra.sdk.channel import SendFailed

KNOWN = 1_000
"""Handles that are known; the oldest are forgotten, their files go with the media folder's own rules."""
START = "media://tools/"


class Shelf:
    """As `sdk.sight.Shelf`. A handle is a random word; a restart forgets all."""

    def __init__(self, media: MediaRoot) -> None:
        self._media = media
        self._known: OrderedDict[tuple[SessionKey, str], str] = OrderedDict()

    async def keep(self, session_key: SessionKey, name: str, data: bytes, mime: str) -> str:
        try:
            kept = await self._media.add("tools", name, data, mime=mime)
        except (GarraError, SendFailed, OSError) as error:
            raise ToolFailed(f"the file could not be kept: {error}") from None
        handle = START + secrets.token_hex(8)
        self._known[session_key, handle] = kept.path
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return handle

    async def read(self, session_key: SessionKey, handle: str, limit: int) -> bytes:
        relative = self._known.get((session_key, handle))
        if relative is None:
            raise ToolFailed(f"there is no file {handle[:100]} in this conversation")
        try:
            path = await self._media.path(relative)
            if (await asyncio.to_thread(path.stat)).st_size > limit:
                raise ToolFailed(f"{handle} is larger than {limit} bytes")
            return await asyncio.to_thread(path.read_bytes)
        except (GarraError, OSError) as error:
            raise ToolFailed(str(error)) from None
