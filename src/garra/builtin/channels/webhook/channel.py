"""One program of the owner's as a chat: `sdk.channel.Channel`, called by it and calling it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from garra.builtin.channels.webhook import codec, signing
from garra.builtin.channels.webhook.faults import failed, lost
from garra.builtin.channels.webhook.settings import settings
from garra.core.errors import ToolFailed, Unavailable
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
from garra.sdk.fetching import bounded
from garra.sdk.ports import Http

BODY: Final = 1 << 20
"""Bytes of a call at most: files come as addresses."""
WAIT_S: Final = 20.0
_ANSWER = 64 << 10
_WAITING = 64

_Stored = asyncio.Future[None]


class Webhook:
    """It has no connection of its own: the link is up while it is on. Making it touches no network."""

    body_limit = BODY

    def __init__(self, account: Account, ports: Ports) -> None:
        self._account, self._ports = account, ports
        self._own = settings(account)
        self._keys = self._own.keys
        self._queue: asyncio.Queue[tuple[Inbound | Ignored, _Stored]] | None = None
        self._pulse: Pulse | None = None
        self._noted = ""
        self.path = self._own.path
        self.limits = Limits(
            text=self._own.text,
            formats=("markdown", "plain"),
            file_in=self._own.file_in,
            file_out=self._own.file_out,
            idempotent=self._own.idempotent,
            beat_s=0.0,
        )

    # ---- receiving

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        """Store what calls bring, in the order in which they came. What cannot be stored ends it, and the callers whose
        messages were not stored are told to come again."""
        if self._own.fault:
            raise LinkRefused(self._own.fault)
        queue = self._queue = asyncio.Queue(_WAITING)
        self._pulse = pulse
        pulse.connected(Identity(f"webhook:{self._account.id}", self.path))
        pulse.alive()
        stored: _Stored | None = None
        try:
            while True:
                event, stored = await queue.get()
                await receive(event)
                pulse.alive()
                if not stored.done():
                    stored.set_result(None)
        finally:
            self._queue = None
            left = [] if stored is None else [stored]
            while not queue.empty():
                left.append(queue.get_nowait()[1])
            for each in left:
                each.cancel()

    def screen(self, method: str, headers: Mapping[str, str]) -> Answered | None:
        """Refuse by the head alone what has no chance: nothing of its body is read."""
        if method != "POST":
            return Answered(405, headers={"allow": "POST"})
        try:
            signing.head(headers, self._now())
        except signing.Unsigned as why:
            return self._unknown(str(why))
        return None

    def _unknown(self, why: str) -> Answered:
        """The caller learns nothing; the owner sees why at the account, once until it is something else."""
        if self._pulse is not None and why != self._noted:
            self._pulse.note(f"a call was refused: {why}")
            self._noted = why
        return Answered(401)

    async def called(self, method: str, headers: Mapping[str, str], body: bytes, receive: Receive) -> Answered:
        """A call, verified before its body is parsed; 200 says that it is stored, or was before."""
        if (refused := self.screen(method, headers)) is not None:
            return refused
        signed = signing.head(headers, self._now())
        if not signing.verified(signed, body, self._keys):
            return self._unknown("it is signed by no secret of this account")
        try:
            event = codec.read(self._account.id, codec.Call(signed.id, signed.timestamp), body)
        except codec.Misread as wrong:
            return Answered(400, _json({"error": str(wrong)}), {"content-type": "application/json"})
        if not await self._store(event):
            return Answered(503, headers={"retry-after": "5"})
        return Answered(200, _json({"id": event.id}), {"content-type": "application/json"})

    async def _store(self, event: Inbound | Ignored) -> bool:
        """Whether it is on disk; not while the account is starting, nor while too many wait."""
        if self._queue is None or self._queue.full():
            return False
        stored: _Stored = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((event, stored))
        await asyncio.wait([stored])
        return not stored.cancelled()

    def _now(self) -> int:
        return self._ports.clock.now_ms() // 1000

    # ---- sending

    async def send(self, message: Outbound) -> str:
        """One call; the id is the other side's where it gives one, else ours. Raises SendFailed."""
        if not self._own.url:
            raise SendFailed("refused", "it has no url to send to: set it to the address that takes answers")
        if self._own.fault:
            raise SendFailed("auth", self._own.fault)
        body = codec.written(message, {file.path: await self._bytes(file.path, file.name) for file in message.files})
        head = signing.headers(message.key, self._now(), body, self._keys)
        try:
            async with self._door().stream(
                "POST",
                self._own.url,
                headers={"content-type": "application/json", **head},
                body=body,
                timeout=WAIT_S,
                via=self._own.via,
            ) as answer:
                if not 200 <= answer.status < 300:
                    raise failed(answer.status, answer.headers, self._now(), files=bool(message.files))
                said = await answer.read(_ANSWER)
        except Unavailable as fault:
            raise lost(fault) from None
        return _named(said) or message.key

    async def _bytes(self, path: str, name: str) -> bytes:
        media = self._ports.media
        if media is None:
            raise SendFailed("refused", "this host keeps no files to send")
        try:
            return await asyncio.to_thread(media.read, path, self._own.file_out)
        except ToolFailed as fault:
            raise SendFailed("too_large", f"{name} cannot be sent: {fault.message}") from None

    def _door(self) -> Http:
        """The way out. Only where the owner lets it does it lead into their own network."""
        if self._own.private:
            return self._ports.http
        if self._ports.public is None:
            raise SendFailed("refused", "this host does not tell public addresses from others")
        return self._ports.public

    async def open_direct(self, user: str) -> Address:
        """A chat with one person has that person's id, unless the other side names it otherwise."""
        return Address(codec.CHANNEL, self._account.id, user, "direct")

    # ---- files and facts

    async def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        """The bytes at the address that a call named. Raises SendFailed."""
        room = min(limit, self._own.file_in)
        try:
            async with self._door().stream("GET", media.ref, timeout=60.0, via=self._own.via) as answer:
                if answer.status != 200:
                    raise SendFailed("gone", f"the file's address answered {answer.status}")
                async for chunk in bounded(answer.chunks(), room):
                    yield chunk
        except Unavailable as fault:
            kind = (fault.details or {}).get("kind")
            raise SendFailed("refused" if kind == "refused" else "passing", fault.message) from None

    def inspect(self) -> Mapping[str, Any]:
        """What is known without asking anybody."""
        return {
            "path": self.path,
            "url": self._own.url or None,
            "secrets": len(self._keys),
            "idempotent": self._own.idempotent,
            "privateNetwork": self._own.private,
            "fault": self._own.fault or None,
        }


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _named(said: bytes) -> str:
    """The id in an answer, where it is JSON that has one."""
    try:
        found = json.loads(said)
    except ValueError:
        return ""
    named = found.get("id") if isinstance(found, dict) else None
    return named[:256] if isinstance(named, str) else ""
