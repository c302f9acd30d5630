"""Somebody whose client encrypts: matrix-nio's own, with its own store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nio import AsyncClient, AsyncClientConfig, MegolmEvent, RoomMessage, RoomMessageText
from nio.crypto import decrypt_attachment, encrypt_attachment

from tests.e2e.synapse import Person


class Sealed:
    """A person at an encrypting client. `heard` is what could be read, `locked` what could not."""

    def __init__(self, person: Person, folder: Path, device: str = "") -> None:
        self.person, self.id = person, person.id
        folder.mkdir(exist_ok=True)
        config = AsyncClientConfig(store_sync_tokens=False, encryption_enabled=True)
        self.client: Any = AsyncClient(
            f"http://127.0.0.1:{person.port}", person.id, store_path=str(folder), config=config
        )
        self.client.restore_login(person.id, device or person.device, person.token)
        self.heard: list[tuple[str, Any]] = []
        self.locked: list[Any] = []
        self._since = ""

    async def look(self) -> None:
        """Read on once, and do what an encrypting client does after it."""
        found = await self.client.sync(timeout=300, since=self._since or None, full_state=not self._since)
        self._since = found.next_batch
        for room, body in found.rooms.join.items():
            for event in body.timeline.events:
                if isinstance(event, MegolmEvent):
                    self.locked.append(event)
                elif isinstance(event, RoomMessage):
                    self.heard.append((room, event))
        if self.client.should_upload_keys:
            await self.client.keys_upload()
        if self.client.should_query_keys:
            await self.client.keys_query()
        if self.client.should_claim_keys:
            await self.client.keys_claim(self.client.get_users_for_key_claiming())
        await self.client.send_to_device_messages()

    async def until(self, found: Callable[[], object], timeout_s: float = 25.0) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not found():
                    await self.look()
        except TimeoutError:
            raise AssertionError(f"{[str(event) for _, event in self.heard[-5:]]} {self.locked[-3:]}") from None

    async def enter(self) -> None:
        """Make the client known, with keys others can begin with."""
        await self.look()
        await self.look()

    def texts(self, sender: str) -> list[str]:
        return [event.body for _, event in self.heard if event.sender == sender and isinstance(event, RoomMessageText)]

    async def said(self, sender: str, words: str) -> None:
        await self.until(lambda: any(words in text for text in self.texts(sender)))

    async def tell(self, room: str, text: str, **content: Any) -> str:
        await self.until(lambda: room in self.client.rooms and self.client.rooms[room].encrypted)
        body = {"msgtype": "m.text", "body": text, **content}
        sent = await self.client.room_send(room, "m.room.message", body, ignore_unverified_devices=True)
        return str(sent.event_id)

    async def show(self, room: str, data: bytes, name: str, mime: str) -> None:
        """Send a file, encrypted."""
        sealed, keys = encrypt_attachment(data)
        url = await self.person.upload(sealed, "application/octet-stream")
        info = {"mimetype": mime, "size": len(data)}
        await self.tell(room, name, msgtype="m.file", info=info, file={**keys, "url": url})

    async def opened(self, content: dict[str, Any]) -> bytes:
        """The bytes of an encrypted file that was sent here."""
        file = content["file"]
        found = await self.client.download(file["url"])
        data: bytes = decrypt_attachment(found.body, file["key"]["k"], file["hashes"]["sha256"], file["iv"])
        return data

    async def close(self) -> None:
        await self.client.close()
