"""One Slack app in one workspace: `sdk.channel.Channel`, with edits, deletes, reactions, files, buttons and status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from garra.builtin.channels.slack import faults, outgoing
from garra.builtin.channels.slack.api import Api, Refused
from garra.builtin.channels.slack.codec import CHANNEL
from garra.builtin.channels.slack.emoji import named
from garra.builtin.channels.slack.missed import History
from garra.builtin.channels.slack.outgoing import FORMAT
from garra.builtin.channels.slack.position import Spot
from garra.builtin.channels.slack.reading import Parts, Reading
from garra.builtin.channels.slack.settings import settings
from garra.core.errors import ToolFailed
from garra.sdk.channel import (
    Account,
    Address,
    File,
    Identity,
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

DOUBT_S = 120.0
"""So long after the first connection of this process a message may be one that an earlier process had half sent."""
_REMEMBERED = 512


class Slack:
    """An app of Slack. Making it touches no network."""

    def __init__(self, account: Account, ports: Ports) -> None:
        self._account, self._ports = account, ports
        own = self._own = settings(account)
        self._api = Api(ports.http, own.bot, own.app, root=own.root, via=own.via)
        self._history = History(self._api, ports.clock)
        self._reading: Reading | None = None
        self._since: float | None = None
        self._doubtful: dict[str, None] = {}
        self._sent: dict[str, str] = {}
        self._uploads: dict[str, list[dict[str, str]]] = {}
        self._direct: dict[str, str] = {}
        self._shown: dict[tuple[str, str], str] = {}
        self.limits = Limits(
            text=own.text,
            formats=(FORMAT, "plain"),
            per_second=10.0,
            per_chat_s=1.0,
            file_in=own.files,
            file_out=own.files,
            edits_per_s=0.8,
            idempotent=True,
            beat_s=30.0,
        )

    # ---- receiving

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        own = self._own
        if not own.bot:
            raise LinkRefused(own.bot.missing or "no bot token: set botToken to the Bot User OAuth Token, xoxb-…")
        if not own.app:
            raise LinkRefused(own.app.missing or "no app token: set appToken to an App-Level Token, xapp-…")
        parts = Parts(own, self._api, self._account.id, self._ports, receive)
        self._reading = Reading(parts, _Noticed(self, pulse))
        await self._reading.run()

    def connected(self) -> None:
        """The link is up."""
        if self._since is None:
            self._since = self._ports.clock.monotonic()

    # ---- sending

    async def send(self, message: Outbound) -> str:
        """Words first, then the files, all at once. What a try before this one may have sent is looked for first."""
        if not message.files and not message.text.strip():
            raise SendFailed("refused", "there is nothing to send")
        chat = await self._chat(message.address)
        try:
            if message.text.strip() and message.key not in self._sent:
                _keep(self._sent, message.key, await self._said(chat, message))
            number = self._sent.get(message.key, "")
            if message.files:
                number = await self._attached(chat, message, number)
        except SendFailed as failed:
            if failed.fault == "unsure":
                _keep(self._doubtful, message.key, None)
            raise
        return number

    async def _said(self, chat: str, message: Outbound) -> str:
        if (known := await self._known(chat, message)) is not None:
            return known
        found = await self._asked("chat.postMessage", outgoing.post(message, chat, self._own.unfurl))
        if not found.get("ts"):
            raise SendFailed("unsure", "Slack took the message and told no number")
        return str(found["ts"])

    async def _known(self, chat: str, message: Outbound) -> str | None:
        """The number of this very message, where a try before this one has sent it. Slack knows no repeated message
        by itself, but keeps with it what programs write to it. Raises SendFailed.
        """
        tried = message.key in self._doubtful
        if not tried and not self._young():
            return None
        try:
            found = await self._history.latest(Spot(chat, outgoing.thread(message)))
        except Refused as refused:
            failed = faults.send_failed(refused)
            if tried and failed.fault in {"unsure", "passing"}:
                raise SendFailed("passing", failed.message, failed.retry_after_s) from None
            return None
        return next((str(one["ts"]) for one in found if outgoing.carries(one, message.key) and one.get("ts")), None)

    def _young(self) -> bool:
        return self._since is not None and self._ports.clock.monotonic() - self._since < DOUBT_S

    async def _attached(self, chat: str, message: Outbound, number: str) -> str:
        """Upload each file, then show them all by one call. Files that may be shown already are looked at first."""
        files = self._uploads.get(message.key)
        if files is not None and await self._stands(chat, files[0]["id"]):
            return number or f"file:{files[0]['id']}"
        files = files or [{"id": await self._uploaded(file), "title": file.name} for file in message.files]
        _keep(self._uploads, message.key, files)
        where = {"files": files, "channel_id": chat, "thread_ts": outgoing.thread(message) or None}
        await self._asked("files.completeUploadExternal", where, wait=60.0)
        return number or f"file:{files[0]['id']}"

    async def _stands(self, chat: str, number: str) -> bool:
        """Whether a file is shown in a chat. Raises SendFailed."""
        try:
            found = (await self._api.call("files.info", {"file": number})).get("file") or {}
        except Refused as refused:
            raise SendFailed("passing", refused.message, refused.retry_after_s) from None
        return any(chat in (found.get(key) or ()) for key in ("channels", "groups", "ims"))

    async def _uploaded(self, file: File) -> str:
        data = await self._read(file)
        wanted = {"filename": file.name, "length": len(data)}
        place = await self._asked("files.getUploadURLExternal", wanted)
        try:
            await self._api.upload(str(place.get("upload_url")), data)
        except Refused as refused:
            fault = faults.send_failed(refused)  # nobody sees an upload before it is completed
            again = "passing" if fault.fault == "unsure" else fault.fault
            raise SendFailed(again, fault.message, fault.retry_after_s) from None
        return str(place.get("file_id"))

    async def _read(self, file: File) -> bytes:
        media, room = self._ports.media, self._own.files
        if media is None:
            raise SendFailed("refused", "this host keeps no files to send")
        if file.size > room:
            raise SendFailed("too_large", f"{file.name} is over {room >> 20} MB")
        try:
            return await asyncio.to_thread(media.read, file.path, room)
        except ToolFailed as fault:
            raise SendFailed("refused", f"{file.name} cannot be read: {fault.message}") from None

    async def _chat(self, address: Address) -> str:
        """The chat's id; `user:ID` is the direct one with somebody. Raises SendFailed."""
        chat = outgoing.place(address)
        if chat.startswith("user:"):
            return (await self.open_direct(chat.removeprefix("user:"))).chat
        if not chat.isascii() or not chat.isalnum():
            raise SendFailed("refused", f"{chat[:40]!r} is no id of a Slack channel, such as C024BE91L")
        return chat

    async def open_direct(self, user: str) -> Address:
        """The direct chat with a person, opened where there is none."""
        if not user.isascii() or not user.isalnum():
            raise SendFailed("refused", f"{user[:40]!r} is no Slack user id, such as U024BE7LH")
        if user not in self._direct:
            found = await self._asked("conversations.open", {"users": user})
            _keep(self._direct, user, str((found.get("channel") or {}).get("id") or ""))
        return Address(CHANNEL, self._account.id, self._direct[user], "direct")

    async def edit(self, message_id: str, message: Outbound) -> None:
        chat = await self._chat(message.address)
        await self._asked("chat.update", outgoing.change(message, chat, message_id))

    async def delete(self, address: Address, message_id: str) -> None:
        await self._quiet("chat.delete", {"channel": await self._chat(address), "ts": message_id}, "message_not_found")

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """One reaction of ours stands under a message; the one before it is taken away."""
        chat, name = await self._chat(address), named(emoji)
        place = {"channel": chat, "timestamp": message_id}
        before = self._shown.pop((chat, message_id), "")
        if name:
            _keep(self._shown, (chat, message_id), name)
            await self._quiet("reactions.add", {**place, "name": name}, "already_reacted")
        if before and before != name:
            await self._quiet("reactions.remove", {**place, "name": before}, "no_reaction")

    async def type(self, address: Address) -> None:
        """Slack shows this in threads with an assistant only; elsewhere there is nothing to show."""
        if address.thread:
            place = {"channel_id": await self._chat(address), "thread_ts": address.thread}
            await self._asked("assistant.threads.setStatus", {**place, "status": "is typing…"})

    async def _quiet(self, method: str, params: Mapping[str, Any], fine: str) -> None:
        """A call for which one answer is as good as done."""
        try:
            await self._api.call(method, params)
        except Refused as refused:
            if refused.word != fine:
                raise faults.send_failed(refused) from None

    async def _asked(self, method: str, params: Mapping[str, Any], wait: float = 30.0) -> dict[str, Any]:
        """Raises SendFailed."""
        try:
            return await self._api.call(method, params, wait=wait)
        except Refused as refused:
            raise faults.send_failed(refused) from None

    # ---- files and facts

    async def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        """The bytes of a file. Raises SendFailed."""
        most = room(media, limit, self._own.files)
        number, _, url = media.ref.partition(" ")
        try:
            if not url:
                found = (await self._api.call("files.info", {"file": number})).get("file") or {}
                url = str(found.get("url_private_download") or found.get("url_private") or "")
            async for chunk in self._api.download(url, most):
                yield chunk
        except Refused as refused:
            raise faults.fetch_failed(refused) from None

    def inspect(self) -> Mapping[str, Any]:
        """What is known without asking Slack."""
        me = self._reading.me if self._reading is not None else None
        return {
            "mode": "socket",
            "apiRoot": self._own.root,
            "botTokenSet": bool(self._own.bot),
            "appTokenSet": bool(self._own.app),
            "bot": {"id": me.user, "username": me.name, "team": me.team} if me and me.user else None,
            "knownChats": len(self._reading.here.last) if self._reading is not None else 0,
        }


class _Noticed:
    """The link's pulse, of which the channel learns when it is up."""

    def __init__(self, channel: Slack, pulse: Pulse) -> None:
        self._channel, self._pulse = channel, pulse

    def alive(self) -> None:
        self._pulse.alive()

    def connected(self, me: Identity) -> None:
        self._channel.connected()
        self._pulse.connected(me)

    def note(self, line: str) -> None:
        self._pulse.note(line)


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    while len(kept) > _REMEMBERED:
        kept.pop(next(iter(kept)))
