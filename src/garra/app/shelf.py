"""Files that tools took from outside: in the media folder, found again only by the session that took them."""

from __future__ import annotations

from garra.core.errors import GarraError, ToolFailed
from garra.core.ids import SessionKey
from garra.domains.delivery.handles import Handles
from garra.domains.delivery.media import MediaRoot
from garra.sdk.channel import SendFailed


class Shelf:
    """As `sdk.sight.Shelf`; the names of what came with messages lead to it too."""

    def __init__(self, media: MediaRoot, handles: Handles) -> None:
        self._media, self._handles = media, handles

    async def keep(self, session_key: SessionKey, name: str, data: bytes, mime: str) -> str:
        try:
            kept = await self._media.add("tools", name, data, mime=mime)
            return await self._handles.give("tools", (session_key,), kept)
        except (GarraError, SendFailed, OSError) as error:
            raise ToolFailed(f"the file could not be kept: {error}") from None

    async def read(self, session_key: SessionKey, handle: str, limit: int) -> bytes:
        return (await self._handles.read(session_key, handle, limit)).data
