"""One Telegram bot: `sdk.channel.Channel`, with edits, deletes, reactions, typing, files and webhook."""

from __future__ import annotations

import asyncio
import hmac
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from typing import Any

from garra.builtin.channels.telegram import faults, outgoing
from garra.builtin.channels.telegram.api import Api, Refused, Upload
from garra.builtin.channels.telegram.codec import CHANNEL, Reader
from garra.builtin.channels.telegram.memory import Kept, Said
from garra.builtin.channels.telegram.outgoing import HTML, Call, Style
from garra.builtin.channels.telegram.polling import HOLD_S, Poller
from garra.builtin.channels.telegram.settings import settings
from garra.builtin.channels.telegram.text import Me
from garra.core.errors import GarraError, ToolFailed
from garra.sdk.channel import (
    Account,
    Address,
    Answered,
    Identity,
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
from garra.sdk.encoding import parsed
from garra.sdk.fetching import room

_HOOK_CHECK_S = 60.0
_REMEMBERED = 256
_UPDATE = 4 << 20
"""Bytes of one update that Telegram calls us with, at most."""


class Telegram:
    """A bot of Telegram. Making it touches no network."""

    def __init__(self, account: Account, ports: Ports) -> None:
        self._account, self._ports = account, ports
        self._own = settings(account)
        self._api = Api(ports.http, self._own.token, self._own.root, self._own.via)
        self._style = Style(self._own.link_preview)
        self._me: Me | None = None
        self._kept, self._said = Kept(ports.cursor), Said()
        self._begun: dict[str, list[str]] = {}
        self.path = self._own.hook_path if self._own.hook_url else ""
        self.body_limit = _UPDATE
        self.limits = Limits(
            text=self._own.text,
            unit="utf16",
            formats=(HTML, "plain"),
            per_second=30.0,
            per_chat_s=1.0,
            per_group_minute=20,
            file_in=self._own.file_in,
            file_out=self._own.file_out,
            edits_per_s=1.0,
            beat_s=_HOOK_CHECK_S if self.path else float(HOLD_S),
        )

    # ---- receiving

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        if not self._own.token:
            raise LinkRefused(self._own.token.missing or "no bot token: set botToken to what BotFather gave you")
        me = await self._whoami()
        pulse.connected(Identity(str(me.id), me.name, me.username))
        if self._own.menu:
            self._ports.spawn(self._offer(), f"telegram menu {self._account.id}")
        if self.path:
            await self._hooked(pulse)
        poller = Poller(
            self._api,
            self._kept,
            self._ports.clock,
            self._own.kinds,
            lambda update: self._take(update, receive),
        )
        await poller.run(me.id, pulse)

    async def _whoami(self) -> Me:
        try:
            told = await self._api.call("getMe")
        except Refused as refused:
            raise faults.link_lost(refused) from None
        self._me = Me(
            int(told["id"]),
            str(told.get("username") or ""),
            str(told.get("first_name") or ""),
            bool(told.get("has_topics_enabled")),
            bool(told.get("can_read_all_group_messages")),
        )
        return self._me

    async def _take(self, update: Mapping[str, Any], receive: Receive) -> None:
        """Store one update; only then answer a button, so that its wait ends on the person's screen."""
        event = Reader(self._account.id, self._me or Me(0)).read(update)
        await receive(self._heard(event))
        if isinstance(event, Inbound) and event.event == "membership" and event.data.startswith("migrated:"):
            await self._kept.move(event.address.chat, int(event.data.removeprefix("migrated:")))
        if isinstance(query := update.get("callback_query"), dict) and "id" in query:
            self._ports.spawn(self._quiet("answerCallbackQuery", {"callback_query_id": str(query["id"])}), "button")

    def _heard(self, event: Inbound | Ignored) -> Inbound | Ignored:
        """The event; a reaction to what somebody else said is none, unless the owner wants all."""
        if not isinstance(event, Inbound) or event.event != "reaction" or self._own.reactions == "all":
            return event
        if (event.address.chat, event.reply_to) in self._said:
            return event
        return Ignored(event.id, event.address, "reaction to another's message", event.raw)

    async def _quiet(self, method: str, params: Mapping[str, Any]) -> None:
        """A call whose failure matters to nobody."""
        try:
            await self._api.call(method, params)
        except Refused:
            return

    async def _offer(self) -> None:
        text = resources.files(__package__).joinpath("menu.toml")
        named = tomllib.loads(await asyncio.to_thread(text.read_text, "utf-8")) | dict(self._own.commands)
        listed = [{"command": name, "description": words[:256]} for name, words in named.items()][:100]
        await self._quiet("setMyCommands", {"commands": listed})

    # ---- called by Telegram

    async def _hooked(self, pulse: Pulse) -> None:
        """Have Telegram call us, and look now and then whether it can. Ends by being cancelled, or raises LinkLost."""
        secret = self._own.hook_secret
        if not secret:
            raise LinkRefused(secret.missing or "webhookUrl needs webhookSecret, by which Telegram's calls are known")
        asked = {"url": self._own.hook_url, "secret_token": secret.reveal(), "allowed_updates": self._own.kinds}
        told = ""
        while True:
            try:
                found = await self._api.call("getWebhookInfo")
                if found.get("url") != self._own.hook_url or not told:
                    await self._api.call("setWebhook", asked)
            except Refused as refused:
                raise faults.lost(refused) from None
            if (fault := str(found.get("last_error_message") or "ok")) != told and fault != "ok":
                pulse.note(f"Telegram cannot call {self._own.hook_url}: {fault}")
            told = fault
            pulse.alive()
            await self._ports.clock.sleep(_HOOK_CHECK_S)

    def screen(self, method: str, headers: Mapping[str, str]) -> Answered | None:
        """The secret stands in the head, so that nobody without it has a body read."""
        given = headers.get("x-telegram-bot-api-secret-token", "")
        secret = self._own.hook_secret
        if not secret or not hmac.compare_digest(given.encode(), secret.reveal().encode()):
            return Answered(401)
        if method != "POST":
            return Answered(405, headers={"allow": "POST"})
        if self._me is None:
            return Answered(503, headers={"retry-after": "5"})
        return None

    async def called(self, method: str, headers: Mapping[str, str], body: bytes, receive: Receive) -> Answered:
        """An update by webhook; 200 says that it is stored."""
        if (refused := self.screen(method, headers)) is not None:
            return refused
        update = parsed(body)
        if not isinstance(update, dict):
            return Answered(400)
        await self._take(update, receive)
        return Answered(200)

    # ---- sending

    async def send(self, message: Outbound) -> str:
        """Several calls where it has several files; a second try goes on where the first one ended."""
        done = self._begun.pop(message.key, [])
        for call in outgoing.calls(self._shown(message), self._style)[len(done) :]:
            try:
                done.append(_number(await self._call(call)))
            except SendFailed:
                self._remember(message.key, done)
                raise
        return done[-1]

    def _remember(self, key: str, done: list[str]) -> None:
        if done:
            self._begun[key] = done
            while len(self._begun) > _REMEMBERED:
                self._begun.pop(next(iter(self._begun)))

    def _shown(self, message: Outbound) -> Outbound:
        """The message without buttons where the owner wants none."""
        kind = "dm" if message.address.kind == "direct" else "group"
        if not message.buttons or self._own.buttons in {kind, "all", "allowlist"}:
            return message
        return replace(message, buttons=())

    async def edit(self, message_id: str, message: Outbound) -> None:
        call = outgoing.change(message_id, self._shown(message), self._style)
        try:
            await self._asked(call)
        except Refused as refused:
            said = refused.said.lower()
            if faults.UNCHANGED in said:
                return
            if "no text in the message to edit" not in said:
                raise faults.send_failed(refused) from None
            await self._call(outgoing.recaption(call))

    async def delete(self, address: Address, message_id: str) -> None:
        try:
            await self._asked(Call("deleteMessage", {"chat_id": outgoing.chat(address), "message_id": int(message_id)}))
        except Refused as refused:
            if not any(words in refused.said.lower() for words in faults.NO_DELETE):
                raise faults.send_failed(refused) from None

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        await self._call(outgoing.reaction(address, message_id, emoji))

    async def type(self, address: Address) -> None:
        await self._call(outgoing.typing(address))

    async def open_direct(self, user: str) -> Address:
        """A person's chat has the person's number; Telegram lets a bot write only to who wrote first."""
        if not user.isdecimal():
            raise SendFailed("refused", f"{user!r} is no Telegram user id, which is a number")
        return Address(CHANNEL, self._account.id, user, "direct")

    async def _call(self, call: Call) -> Any:
        """Raises SendFailed."""
        try:
            return await self._asked(call)
        except Refused as refused:
            if "photo" in call.files and any(words in refused.said.lower() for words in faults.NOT_AN_IMAGE):
                return await self._call(outgoing.as_document(call))
            raise faults.send_failed(refused) from None

    async def _asked(self, call: Call) -> Any:
        """One call, to the chat's new place when Telegram says it has moved. Raises Refused."""
        to = await self._kept.to(str(call.params.get("chat_id")))
        if to is not None:
            call = outgoing.moved(call, to)
        uploads = [await self._upload(name, call) for name in call.files]
        try:
            return await self._sent(call, uploads)
        except Refused as refused:
            if refused.migrated is None or refused.migrated == call.params.get("chat_id"):
                raise
            with suppress(GarraError):  # a full disk: the move is known until the next start, and then learnt again
                await self._kept.move(str(call.params["chat_id"]), refused.migrated)
            return await self._sent(outgoing.moved(call, refused.migrated), uploads)

    async def _sent(self, call: Call, uploads: list[Upload]) -> Any:
        result = await self._api.call(call.method, call.params, files=uploads, wait=120.0 if uploads else 30.0)
        self._said.note(result)
        return result

    async def _upload(self, name: str, call: Call) -> Upload:
        file, media = call.files[name], self._ports.media
        if media is None:
            raise SendFailed("refused", "this host keeps no files to send")
        if file.size > self._own.file_out:
            raise SendFailed("too_large", f"{file.name} is over {self._own.file_out >> 20} MB")
        try:
            data = await asyncio.to_thread(media.read, file.path, self._own.file_out)
        except ToolFailed as fault:
            raise SendFailed("refused", f"{file.name} cannot be read: {fault.message}") from None
        return Upload(name, file.name, file.mime, data)

    # ---- files and facts

    async def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        """The bytes of an attachment. Raises SendFailed."""
        most = room(media, limit, self._own.file_in)
        try:
            found = await self._api.call("getFile", {"file_id": media.ref})
            path = str(found.get("file_path") or "")
            if not path or path.startswith("/"):
                raise SendFailed("refused", "the Bot API server keeps its files where they cannot be fetched")
            async for chunk in self._api.download(path, most):
                yield chunk
        except Refused as refused:
            raise faults.fetch_failed(refused) from None

    def inspect(self) -> Mapping[str, Any]:
        """What is known without asking Telegram."""
        me = self._me
        return {
            "mode": "webhook" if self.path else "polling",
            "apiRoot": self._api.root,
            "tokenSet": bool(self._own.token),
            "bot": None if me is None else {"id": str(me.id), "username": me.username, "name": me.name},
            "privacyMode": None if me is None else not me.reads_all,
            "directTopics": None if me is None else me.topics,
            "webhookPath": self.path or None,
            "movedChats": self._kept.moves,
        }


def _number(result: Any) -> str:
    """The id of a sent message; the first of an album."""
    first = result[0] if isinstance(result, list) else result
    if not isinstance(first, dict) or "message_id" not in first:
        raise SendFailed("unsure", "Telegram took the message and told no id")
    return str(first["message_id"])
