"""End-to-end encryption of one login: the vault's work in a thread, its requests through the host's door."""

from __future__ import annotations

import asyncio
import importlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from garra.builtin.channels.matrix.api import Api, Refused, at
from garra.builtin.channels.matrix.text import Me
from garra.core.errors import ToolFailed
from garra.sdk.ports import Files

if TYPE_CHECKING:
    from garra.builtin.channels.matrix.vault import Vault

Event = Mapping[str, Any]
KEPT = 500
"""Messages that wait for their key, the newest."""
_FILE = "unread.json"
_UNREAD = msgspec.json.Decoder(dict[str, tuple[str, dict[str, Any]]])
_BATCHES = 200
_TAKEN = {"one_time_key_counts": {"signed_curve25519": 50}}


def load() -> Any:
    """The module that loads matrix-nio, which takes most of a second: call it in a thread."""
    return importlib.import_module("garra.builtin.channels.matrix.vault")


async def opening(api: Api, me: Me, state: Files) -> Secrecy | str:
    """Encryption as it stands for this login, or why it cannot be. Raises Refused."""
    if not me.device:
        return "this login has no device, so it can have no keys"
    made = await asyncio.to_thread((await asyncio.to_thread(load)).Vault, state.root, me)
    found = await api.call("POST", "/keys/query", {"device_keys": {me.id: []}})
    devices = (found.get("device_keys") or {}).get(me.id) or {}
    if not await asyncio.to_thread(made.agrees, devices.get(me.device)):
        return (
            f"the device {me.device} belongs to another program, which has its keys. Encrypted rooms cannot be read: "
            "give the bot a login of its own (userId and password, or a token made for it)"
        )
    secrecy = Secrecy(api, me, made, state)
    await secrecy.publish()
    return secrecy


class Secrecy:
    """As `reading.Opens`, and for what is sent."""

    def __init__(self, api: Api, me: Me, vault: Vault, state: Files) -> None:
        self._api, self._me, self._vault, self._state = api, me, vault, state
        self._turn = asyncio.Lock()
        self._unread: dict[str, tuple[str, dict[str, Any]]] | None = None
        self._news = True

    async def publish(self) -> None:
        """Keep enough keys on the server for others to begin with. Raises Refused."""
        content = await asyncio.to_thread(self._vault.upload)
        if content is None:
            return
        try:
            found = await self._api.call("POST", "/keys/upload", content)
        except Refused as refused:
            if refused.status != 400:
                raise
            found = _TAKEN  # an older state of this folder gave keys these names before: the next ones have others
        await asyncio.to_thread(self._vault.uploaded, found)

    # ---- what comes in

    async def feed(self, found: Event) -> None:
        """Take the keys that came with a sync. Raises Refused."""
        async with self._turn:
            self._news = await asyncio.to_thread(self._vault.feed, found) or self._news
            await self.publish()
            await self._mend()

    async def _mend(self) -> None:
        """Begin anew with devices whose session broke, and say so to them."""
        if wedged := self._vault.wedged():
            found = await self._api.call("POST", "/keys/claim", {"one_time_keys": wedged})
            await asyncio.to_thread(self._vault.claimed, found)
        for kind, content, message in self._vault.waiting():
            await self._post(kind, content)
            await asyncio.to_thread(self._vault.posted, message)

    async def _post(self, kind: str, content: Event) -> None:
        await self._api.call("PUT", at("sendToDevice", kind, secrets.token_hex(16)), content)

    async def opened(self, room: str, event: Event) -> Event | str:
        """The event that is in an encrypted one, or why it cannot be read. Raises Refused."""
        sender = str(event.get("sender"))
        async with self._turn:
            if self._vault.asking([sender]):
                await self._query([sender])
        return await asyncio.to_thread(self._vault.opened, room, event)

    async def keep(self, room: str, event: Event, why: str) -> bool:
        """Keep one that cannot be read until its key comes; whether it is a new one."""
        unread = await self._waiting()
        name = str(event.get("event_id"))
        if name in unread:
            return False
        unread[name] = (room, dict(event))
        while len(unread) > KEPT:
            unread.pop(next(iter(unread)))
        await self._save(unread)
        return True

    async def late(self) -> Sequence[tuple[str, Event, Event]]:
        """Kept ones that can be read now: the room, the event as it came, and what is in it."""
        if not self._news:
            return ()
        self._news = False
        found = []
        for room, event in list((await self._waiting()).values()):
            inner = await asyncio.to_thread(self._vault.opened, room, event)
            if not isinstance(inner, str):
                found.append((room, event, inner))
        return found

    async def forget(self, event: Event) -> None:
        unread = await self._waiting()
        if unread.pop(str(event.get("event_id")), None) is not None:
            await self._save(unread)

    async def _waiting(self) -> dict[str, tuple[str, dict[str, Any]]]:
        if self._unread is None:
            try:
                self._unread = _UNREAD.decode(await asyncio.to_thread(self._state.read, _FILE, 64 << 20))
            except (ToolFailed, msgspec.DecodeError):
                self._unread = {}
        return self._unread

    async def _save(self, unread: Mapping[str, Any]) -> None:
        await asyncio.to_thread(self._state.write, _FILE, msgspec.json.encode(unread))

    async def member(self, room: str) -> None:
        """Somebody came or went: who left must not read on, and who came not what was said before."""
        async with self._turn:
            self._vault.anew(room)

    # ---- what goes out

    async def locked(self) -> set[str]:
        """Rooms that were seen encrypted once, whatever the server says now."""
        return await asyncio.to_thread(self._vault.locked)

    async def encrypted(self, room: str, members: Iterable[str], kind: str, content: Event) -> Event:
        """The event that holds another, its key with every device of `members` first. Raises Refused."""
        users = sorted(members)
        async with self._turn:
            await self._query(self._vault.asking(users))
            if not self._vault.ready(room, users):
                await self._share(room, users)
            return await asyncio.to_thread(self._vault.encrypted, room, kind, content)

    async def _share(self, room: str, users: Sequence[str]) -> None:
        self._vault.anew(room)
        if missing := await asyncio.to_thread(self._vault.missing, users):
            found = await self._api.call("POST", "/keys/claim", {"one_time_keys": missing})
            await asyncio.to_thread(self._vault.claimed, found)
        await asyncio.to_thread(self._vault.lock, room)
        for _ in range(_BATCHES):
            devices, content = await asyncio.to_thread(self._vault.share, room, users)
            if not devices:
                return
            await self._post("m.room.encrypted", content)
            self._vault.shared(room, devices)
        raise Refused("sendToDevice", "the room has too many devices", 413)

    async def _query(self, users: Sequence[str]) -> None:
        """Ask for the devices of people. A name the server takes for none has none, and is nobody else's fault."""
        if not users:
            return
        try:
            found = await self._api.call("POST", "/keys/query", {"device_keys": {user: [] for user in users}})
        except Refused as refused:
            if refused.status != 400:
                raise
            if len(users) > 1:
                for user in users:
                    await self._query([user])
                return
            found = {"device_keys": {users[0]: {}}}
        await asyncio.to_thread(self._vault.queried, users, found)
        self._news = True
