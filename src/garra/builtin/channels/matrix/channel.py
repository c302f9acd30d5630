"""One Matrix account: `sdk.channel.Channel`, with edits, redactions, reactions, typing, files and encryption."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from garra.builtin.channels.matrix import faults, outgoing, secrecy
from garra.builtin.channels.matrix.api import Api, Refused, at
from garra.builtin.channels.matrix.codec import CHANNEL, Reader
from garra.builtin.channels.matrix.files import Shelf
from garra.builtin.channels.matrix.identity import Signer
from garra.builtin.channels.matrix.invites import Door
from garra.builtin.channels.matrix.login import Login
from garra.builtin.channels.matrix.reading import HOLD_S, Reading
from garra.builtin.channels.matrix.rooms import Facts, Rooms
from garra.builtin.channels.matrix.secrecy import Secrecy
from garra.builtin.channels.matrix.settings import settings
from garra.builtin.channels.matrix.text import Me, user_id
from garra.sdk.channel import (
    Account,
    Address,
    Identity,
    Limits,
    Media,
    Outbound,
    Ports,
    Pulse,
    Receive,
    SendFailed,
)
from garra.sdk.ports import Files

_TYPING_MS = 10_000
_REMEMBERED = 512


class Matrix:
    """An account of ours on a homeserver. Making it touches no network."""

    def __init__(self, account: Account, ports: Ports) -> None:
        self._account, self._ports = account, ports
        self._own = settings(account)
        self._api = Api(ports.http, self._own.homeserver, self._own.via)
        self._api.token = self._own.token
        self._rooms = Rooms(self._api, self._own)
        self._files = Shelf(self._api, ports.media, self._own.file)
        self._me: Me | None = None
        self._secrecy: Secrecy | None = None
        self._open = "" if self._own.encryption and ports.state is not None else "encryption is off"
        self._reactions: dict[tuple[str, str], str] = {}
        self.limits = Limits(
            text=self._own.text,
            formats=(outgoing.HTML, "plain"),
            per_second=5.0,
            file_in=self._own.file,
            file_out=self._own.file,
            edits_per_s=0.5,
            traces=True,
            idempotent=True,
            beat_s=float(HOLD_S),
        )

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        me = self._me = await Login(self._api, self._own, self._ports.state).enter()
        self._rooms = Rooms(self._api, self._own)
        self._secrecy = await self._keys(me, pulse)
        pulse.connected(Identity(me.id, me.name or me.local, me.id))
        reading = Reading(
            self._api,
            self._own,
            Reader(self._account.id, me),
            self._rooms,
            Door(self._api, self._own.joining, self._ports.clock),
            self._ports.cursor,
            receive,
            pulse,
            self._secrecy,
        )
        try:
            await reading.run()
        finally:
            self._secrecy = None  # the next link has a channel of its own, and its keys must not move in two places

    async def _keys(self, me: Me, pulse: Pulse) -> Secrecy | None:
        """Encryption, where it is wanted and can be. Raises LinkLost."""
        state = self._ports.state
        if self._open or state is None:
            return None
        try:
            found = await secrecy.opening(self._api, me, state)
        except Refused as refused:
            raise faults.lost(refused) from None
        if isinstance(found, str):
            pulse.note(f"No encryption: {found}.")
            self._open = found
            return None
        await self._sign(me, state, pulse)
        self._rooms.locked = await found.locked()
        self._files.lock, self._files.unlock = secrecy.load().lock, secrecy.load().unlock
        return found

    async def _sign(self, me: Me, state: Files, pulse: Pulse) -> None:
        """Others trust a login that its account has signed. Without, the bot works, and some clients warn of it."""
        try:
            line = await Signer(self._api, self._own, me, state).sign()
        except Refused as refused:
            line = f"this login could not be signed for its account: {refused.said}"
        if line:
            pulse.note(line)

    # ---- sending

    async def send(self, message: Outbound) -> str:
        """An event for each file, then one for the words; a second try gives the same events, not others."""
        room, sent = message.address.chat, ""
        for number, file in enumerate(message.files):
            stored = await self._files.store(file, locked=(await self._facts(room)).encrypted)
            content = outgoing.attached(message, file, stored)
            sent = await self._put(room, "m.room.message", content, outgoing.transaction(message, number))
        if message.text.strip() or message.buttons or not message.files:
            content = outgoing.spoken(message)
            sent = await self._put(room, "m.room.message", content, outgoing.transaction(message, "words"))
        return sent

    async def edit(self, message_id: str, message: Outbound) -> None:
        content = outgoing.changed(message_id, message)
        key = outgoing.transaction(message, f"{message_id}\0{message.text}")
        await self._put(message.address.chat, "m.room.message", content, key)

    async def delete(self, address: Address, message_id: str) -> None:
        """Take it back; one that is not there is back already."""
        await self._redact(address.chat, message_id)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """One reaction at a time: the one before it is taken back."""
        place = (address.chat, message_id)
        for before in await self._reacted(address.chat, message_id, emoji):
            await self._redact(address.chat, before)
        if not emoji:
            return
        content = outgoing.reaction(message_id, emoji)
        key = outgoing.transaction(Outbound(f"{message_id}\0{self._ports.clock.now_ms()}", address, emoji), "reaction")
        try:
            self._reactions[place] = await self._event(address.chat, "m.reaction", content, key)
        except Refused as refused:
            if refused.errcode != "M_DUPLICATE_ANNOTATION":
                raise faults.send_failed(refused) from None
        while len(self._reactions) > _REMEMBERED:
            self._reactions.pop(next(iter(self._reactions)))

    async def _reacted(self, room: str, message_id: str, emoji: str) -> list[str]:
        """The reactions of ours on a message. After a restart only the server knows them."""
        if (known := self._reactions.pop((room, message_id), None)) is not None:
            return [known]
        if emoji or self._me is None:
            return []
        path = "/_matrix/client/v1" + at("rooms", room, "relations", message_id, "m.annotation", "m.reaction")
        try:
            found = await self._api.call("GET", path, query={"limit": 50})
        except Refused as refused:
            raise faults.upload_failed(refused) from None
        chunk = [event for event in found.get("chunk") or () if isinstance(event, dict)]
        return [str(event["event_id"]) for event in chunk if event.get("sender") == self._me.id]

    async def type(self, address: Address) -> None:
        if self._me is None:
            return
        path = at("rooms", address.chat, "typing", self._me.id)
        try:
            await self._api.call("PUT", path, {"typing": True, "timeout": _TYPING_MS})
        except Refused as refused:
            raise faults.send_failed(refused) from None

    async def open_direct(self, user: str) -> Address:
        """The room of two with a person: the one there is, else a new one with an invitation."""
        whole = user_id(user)
        if not whole:
            raise SendFailed("refused", f"{user!r} is no whole Matrix id like @ann:example.org")
        try:
            room = await self._direct(whole)
        except Refused as refused:
            raise faults.upload_failed(refused) from None
        return Address(CHANNEL, self._account.id, room, "direct")

    async def _direct(self, user: str) -> str:
        me = self._me.id if self._me else str((await self._api.call("GET", "/account/whoami")).get("user_id"))
        path = at("user", me, "account_data", "m.direct")
        try:
            listed = await self._api.call("GET", path)
        except Refused as refused:
            if refused.status != 404:
                raise
            listed = {}
        mapped = listed.get(user)
        rooms = [str(room) for room in mapped] if isinstance(mapped, list) else []
        joined = (await self._api.call("GET", "/joined_rooms")).get("joined_rooms") or []
        for room in [*(room for room in reversed(rooms) if room in joined), *joined]:
            facts = await self._rooms.facts(str(room))
            if set(facts.names) in ({me, user}, {me} if room in rooms else {me, user}):
                return str(room)
        asked: dict[str, Any] = {"is_direct": True, "invite": [user], "preset": "trusted_private_chat"}
        if self._secrecy is not None:
            content = {"algorithm": "m.megolm.v1.aes-sha2"}
            asked["initial_state"] = [{"type": "m.room.encryption", "state_key": "", "content": content}]
        made = str((await self._api.call("POST", "/createRoom", asked)).get("room_id") or "")
        await self._api.call("PUT", path, {**listed, user: [*rooms, made]})
        return made

    async def _facts(self, room: str) -> Facts:
        """What is known of a room that is written to. Raises SendFailed."""
        try:
            facts = await self._rooms.facts(room)
        except Refused as refused:
            raise faults.upload_failed(refused) from None
        if facts.encrypted and self._secrecy is None:
            if self._open:
                raise SendFailed("refused", f"the room is encrypted, and {self._open}")
            raise SendFailed("passing", "there is no connection")
        return facts

    async def _put(self, room: str, kind: str, content: Mapping[str, Any], key: str) -> str:
        """Raises SendFailed."""
        facts = await self._facts(room)
        if facts.encrypted and self._secrecy is not None:
            try:
                content = await self._secrecy.encrypted(room, facts.readers, kind, content)
            except Refused as refused:
                raise faults.upload_failed(refused) from None
            kind = "m.room.encrypted"
        try:
            return await self._event(room, kind, content, key)
        except Refused as refused:
            raise faults.send_failed(refused) from None

    async def _event(self, room: str, kind: str, content: Mapping[str, Any], key: str) -> str:
        found = await self._api.call("PUT", at("rooms", room, "send", kind, key), content)
        if not isinstance(found.get("event_id"), str):
            raise SendFailed("unsure", "the homeserver took the message and told no id")
        return str(found["event_id"])

    async def _redact(self, room: str, event_id: str) -> None:
        try:
            await self._api.call("PUT", at("rooms", room, "redact", event_id, outgoing.again(event_id)))
        except Refused as refused:
            if refused.status != 404:
                raise faults.send_failed(refused) from None

    # ---- files and facts

    def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        """The bytes of an attachment, decrypted. Raises SendFailed."""
        return self._files.fetch(media, limit)

    def inspect(self) -> Mapping[str, Any]:
        """What is known without asking the server."""
        own, me = self._own, self._me
        return {
            "homeserver": own.homeserver,
            "tokenSet": bool(own.token),
            "passwordSet": bool(own.password),
            "userId": me.id if me else own.user or None,
            "deviceId": (me.device if me else own.device) or None,
            "encryption": own.encryption,
            "autoJoin": own.joining.mode,
        }
