"""Files: stored on the server before they are spoken of, fetched when they are wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from garra.builtin.channels.matrix import faults
from garra.builtin.channels.matrix.api import Api, Refused
from garra.builtin.channels.matrix.outgoing import Stored
from garra.core.errors import ToolFailed
from garra.sdk.channel import File, Media, SendFailed
from garra.sdk.ports import Files

Lock = Callable[[bytes], tuple[bytes, Mapping[str, Any]]]
Unlock = Callable[[bytes, Mapping[str, Any]], bytes]
"""Encrypt and decrypt a file. They work for a while: call them in a thread. `Unlock` raises ValueError."""


class Shelf:
    """The files of one account, at most `room` bytes each."""

    def __init__(self, api: Api, media: Files | None, room: int) -> None:
        self._api, self._media, self._room = api, media, room
        self.lock: Lock | None = None
        self.unlock: Unlock | None = None

    async def store(self, file: File, *, locked: bool) -> Stored:
        """Bring a file to the server. Raises SendFailed."""
        data, keys = await self._read(file), None
        if locked and self.lock is not None:
            data, keys = await asyncio.to_thread(self.lock, data)
        mime = "application/octet-stream" if locked else file.mime
        try:
            url = await self._api.upload(data, "" if locked else file.name, mime)
        except Refused as refused:
            raise faults.upload_failed(refused) from None
        if not url.startswith("mxc://"):
            raise SendFailed("passing", "the homeserver took the file and told no address")
        return Stored(url) if keys is None else Stored(locked={**keys, "url": url})

    async def _read(self, file: File) -> bytes:
        if self._media is None:
            raise SendFailed("refused", "this host keeps no files to send")
        if file.size > self._room:
            raise SendFailed("too_large", f"{file.name} is over {self._room >> 20} MB")
        try:
            return await asyncio.to_thread(self._media.read, file.path, self._room)
        except ToolFailed as fault:
            raise SendFailed("refused", f"{file.name} cannot be read: {fault.message}") from None

    async def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        """The bytes of an attachment. What is encrypted is given when all of it was found sound. Raises SendFailed."""
        room = min(limit, self._room)
        if media.size is not None and media.size > room:
            raise SendFailed("too_large", f"the file is over {room >> 20} MB")
        locked = _locked(media.ref)
        url = str(locked.get("url") or "") if locked else media.ref
        if not url.startswith("mxc://"):
            raise SendFailed("refused", "the file has no address on a homeserver")
        try:
            if locked is None:
                async for chunk in self._api.download(url, room):
                    yield chunk
            else:
                yield await self._opened(b"".join([chunk async for chunk in self._api.download(url, room)]), locked)
        except Refused as refused:
            raise faults.fetch_failed(refused) from None

    async def _opened(self, data: bytes, locked: Mapping[str, Any]) -> bytes:
        if self.unlock is None:
            raise SendFailed("refused", "the file is encrypted, and encryption is off")
        try:
            return await asyncio.to_thread(self.unlock, data, locked)
        except (ValueError, KeyError, TypeError):
            raise SendFailed("refused", "the encrypted file was changed on its way, or its key does not fit") from None


def _locked(ref: str) -> Mapping[str, Any] | None:
    """What an encrypted file is read by; None for one that is not."""
    if not ref.startswith("{"):
        return None
    found = msgspec.json.decode(ref)
    return found if isinstance(found, dict) else {}
