"""One Discord bot: `sdk.channel.Channel`, with edits, deletes, reactions, typing, files and buttons."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from garra.builtin.channels.discord import faults, outgoing
from garra.builtin.channels.discord.api import Api, Refused, Upload
from garra.builtin.channels.discord.codec import CHANNEL, Event, Reader
from garra.builtin.channels.discord.outgoing import FORMAT, Post, Signs, Style
from garra.builtin.channels.discord.reading import Parts, Reading
from garra.builtin.channels.discord.settings import settings
from garra.builtin.channels.discord.spoken import attachments
from garra.builtin.channels.discord.world import World
from garra.core.errors import ToolFailed
from garra.sdk.channel import (
    Account,
    Address,
    File,
    Ignored,
    Inbound,
    Limits,
    LinkRefused,
    Media,
    Outbound,
    Ports,
    Pulse,
    Receive,
    SendFailed,
)
from garra.sdk.fetching import room

_CDN = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
_REMEMBERED = 512
_SETTLE_S = 30.0
_NO_HISTORY = 160002
"""Discord's number for: who may not read what was said before cannot answer it."""
_LATER = 6
"""Answers an interaction with nothing to see: what follows from it comes as a message."""


class Discord:
    """A bot of Discord. Making it touches no network."""

    def __init__(self, account: Account, ports: Ports) -> None:
        self._account, self._ports = account, ports
        self._own = settings(account)
        self._api = Api(ports.http, ports.clock, self._own.token, root=self._own.root, via=self._own.via)
        self._style = Style(self._own.previews, self._own.buttons)
        self._reading: Reading | None = None
        self._sent: dict[str, str] = {}
        self._direct: dict[str, str] = {}
        self._signs = Signs({})
        self.limits = Limits(
            text=self._own.text,
            formats=(FORMAT, "plain"),
            per_second=40.0,
            per_chat_s=1.0,
            file_in=self._own.file_in,
            file_out=self._own.file_out,
            edits_per_s=0.8,
            idempotent=True,
            beat_s=45.0,
        )

    # ---- receiving

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        own = self._own
        if not own.token:
            raise LinkRefused(own.token.missing or "no bot token: set token to the bot's, from the Developer Portal")

        async def take(event: Event, found: Inbound | Ignored) -> None:
            await receive(found)
            self._stored(event)

        world, reader = World(self._api), Reader(self._account.id, own.reactions)
        self._reading = Reading(Parts(own, self._api, world, reader, self._ports, take), pulse)
        await self._reading.run()

    def _stored(self, event: Event) -> None:
        """A press is answered once it is stored, so that its wait ends."""
        body = event.body
        if event.name == "INTERACTION_CREATE" and isinstance(body, dict):
            self._ports.spawn(self._answered(str(body.get("id")), str(body.get("token"))), "discord button")

    async def _answered(self, number: str, token: str) -> None:
        try:
            await self._api.call("POST", f"/interactions/{number}/{quote(token, safe='')}/callback", {"type": _LATER})
        except Refused:
            return  # too late for Discord, but the press is stored

    def _remember(self, nonce: str, message: str) -> None:
        self._sent[nonce] = message
        while len(self._sent) > _REMEMBERED:
            self._sent.pop(next(iter(self._sent)))

    # ---- sending

    async def send(self, message: Outbound) -> str:
        """Several messages where it has many files; what a try before this one is known to have sent is not sent."""
        listed = outgoing.posts(message, self._style)
        chat = await self._chat(message.address)
        await self._settled()
        numbers = [await self._once(chat, post) for post in listed]
        return numbers[0]

    async def _once(self, chat: str, post: Post) -> str:
        """Send it, unless it is known to have arrived."""
        seen = self._reading.here.sent if self._reading is not None else {}
        known = self._sent.get(post.nonce) or seen.get(post.nonce)
        if known is None:
            known = await self._post(chat, post)
            self._remember(post.nonce, known)
        return known

    async def _settled(self) -> None:
        """What the gateway repeats may show as sent what is about to be sent. Raises SendFailed."""
        if self._reading is None or self._reading.settled.is_set():
            return
        try:
            async with asyncio.timeout(_SETTLE_S):
                await self._reading.settled.wait()
        except TimeoutError:
            raise SendFailed("passing", "what was missed is still being read") from None

    async def _post(self, chat: str, post: Post) -> str:
        uploads = [await self._upload(file) for file in post.files]
        path, wait = f"/channels/{chat}/messages", 120.0 if uploads else 30.0
        try:
            found = await self._api.call("POST", path, post.body, files=uploads, wait=wait)
        except Refused as refused:
            if refused.number != _NO_HISTORY or "message_reference" not in post.body:
                raise faults.send_failed(refused) from None
            return await self._post(chat, post.alone())
        if not isinstance(found, dict) or "id" not in found:
            raise SendFailed("unsure", "Discord took the message and told no id")
        return str(found["id"])

    async def _upload(self, file: File) -> Upload:
        media = self._ports.media
        if media is None:
            raise SendFailed("refused", "this host keeps no files to send")
        if file.size > self._own.file_out:
            raise SendFailed("too_large", f"{file.name} is over {self._own.file_out >> 20} MB")
        try:
            data = await asyncio.to_thread(media.read, file.path, self._own.file_out)
        except ToolFailed as fault:
            raise SendFailed("refused", f"{file.name} cannot be read: {fault.message}") from None
        return Upload(file.name, file.mime, data)

    async def _chat(self, address: Address) -> str:
        """The channel's id; `user:ID` is the direct one with somebody. Raises SendFailed."""
        chat = address.chat.removeprefix("channel:")
        if chat.startswith("user:"):
            return (await self.open_direct(chat.removeprefix("user:"))).chat
        if not chat.isdecimal():
            raise SendFailed("refused", f"{chat[:40]!r} is no id of a Discord channel, which is a number")
        return chat

    async def open_direct(self, user: str) -> Address:
        """The direct chat with a person, opened where there is none."""
        if not user.isdecimal():
            raise SendFailed("refused", f"{user[:40]!r} is no Discord user id, which is a number")
        if user not in self._direct:
            found = await self._asked("POST", "/users/@me/channels", {"recipient_id": user})
            self._direct[user] = str(found["id"])
            while len(self._direct) > _REMEMBERED:
                self._direct.pop(next(iter(self._direct)))
        return Address(CHANNEL, self._account.id, self._direct[user], "direct")

    async def edit(self, message_id: str, message: Outbound) -> None:
        chat = await self._chat(message.address)
        await self._asked("PATCH", f"/channels/{chat}/messages/{message_id}", outgoing.change(message, self._style))

    async def delete(self, address: Address, message_id: str) -> None:
        await self._gone(f"/channels/{await self._chat(address)}/messages/{message_id}")

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """One reaction of ours stands under a message; the one before it is taken away."""
        place = await self._chat(address), message_id
        path = f"/channels/{place[0]}/messages/{message_id}/reactions"
        before = self._signs.turn(place, emoji)
        if emoji:
            await self._asked("PUT", f"{path}/{quote(emoji, safe='')}/@me")
        if before:
            await self._gone(f"{path}/{quote(before, safe='')}/@me")

    async def type(self, address: Address) -> None:
        await self._asked("POST", f"/channels/{await self._chat(address)}/typing")

    async def _gone(self, path: str) -> None:
        """Take something away; that it is not there is as good."""
        try:
            await self._api.call("DELETE", path)
        except Refused as refused:
            if refused.status != 404:
                raise faults.send_failed(refused) from None

    async def _asked(self, method: str, path: str, body: Any = None) -> Any:
        """Raises SendFailed."""
        try:
            return await self._api.call(method, path, body)
        except Refused as refused:
            raise faults.send_failed(refused) from None

    # ---- files and facts

    async def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        """The bytes of an attachment; an address that has run out is asked for anew. Raises SendFailed."""
        most = room(media, limit, self._own.file_in)
        chat, message, number, url = [*media.ref.split(" "), "", "", ""][:4]
        for again in (False, True):
            begun = False
            if again:
                url = await self._anew(chat, message, number)
            try:
                async for chunk in self._api.download(self._own_address(url), most):
                    begun = True
                    yield chunk
            except Refused as refused:
                if again or begun or refused.status not in {403, 404}:
                    raise faults.fetch_failed(refused) from None
            else:
                return

    async def _anew(self, chat: str, message: str, number: str) -> str:
        """Where an attachment is now. Raises SendFailed."""
        try:
            found = await self._api.call("GET", f"/channels/{chat}/messages/{message}")
        except Refused as refused:
            raise faults.fetch_failed(refused) from None
        fresh = next((str(one.get("url")) for one in attachments(found or {}) if str(one.get("id")) == number), "")
        if not fresh:
            raise SendFailed("gone", "the file is no longer there")
        return fresh

    def _own_address(self, url: str) -> str:
        """An attachment's address, where it is Discord's. Raises SendFailed."""
        parts, root = urlsplit(url), urlsplit(self._own.root)
        if (parts.scheme == "https" and parts.hostname in _CDN) or (parts.scheme, parts.netloc) == (
            root.scheme,
            root.netloc,
        ):
            return url
        raise SendFailed("refused", "the file is not on Discord's own servers")

    def inspect(self) -> Mapping[str, Any]:
        """What is known without asking Discord."""
        here = self._reading.here if self._reading is not None else None
        return {
            "apiRoot": self._own.root,
            "tokenSet": bool(self._own.token),
            "intents": self._own.intents,
            "messageContent": self._own.content,
            "bot": {"id": here.bot, "username": here.handle, "name": here.name} if here and here.bot else None,
            "session": bool(here and here.session),
            "knownChats": len(here.chats) if here else 0,
        }
