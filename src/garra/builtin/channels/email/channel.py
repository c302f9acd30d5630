"""One mailbox: `sdk.channel.Channel`, with attachments both ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from garra.builtin.channels.email import letter, outgoing
from garra.builtin.channels.email.codec import CHANNEL, valid
from garra.builtin.channels.email.mailbox import Facts, Mailbox
from garra.builtin.channels.email.outgoing import From, Thread, message_id
from garra.builtin.channels.email.post import post
from garra.builtin.channels.email.reading import Reader, thread
from garra.builtin.channels.email.settings import settings
from garra.core.errors import ToolFailed, Unavailable
from garra.sdk.channel import (
    Account,
    Address,
    File,
    Identity,
    Limits,
    LinkLost,
    LinkRefused,
    Media,
    Outbound,
    Ports,
    Pulse,
    Receive,
    SendFailed,
)
from garra.sdk.ports import Dial

PIECE = 256 << 10


class Email:
    """A mailbox of ours. Making it touches no network."""

    def __init__(self, account: Account, ports: Ports) -> None:
        self._account, self._ports = account, ports
        own = self._own = settings(account)
        self._reader = Reader(own, account.id, ports.cursor, ports.clock)
        self._facts: Facts | None = None
        self.limits = Limits(
            text=own.text,
            formats=("plain",),
            per_second=2.0,
            per_chat_s=1.0,
            file_in=own.room,
            file_out=own.room * 7 // 10,  # packed for mail, a file grows by more than a third
            beat_s=max(own.idle_s, own.poll_s),
        )

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        own = self._own
        if not valid(own.address):
            raise LinkRefused(f"{own.address[:80]!r} is no address; set channels.email.address")
        if not own.imap.password:
            raise LinkRefused(own.imap.password.missing or "no password: set channels.email.password")
        if not own.receivers and not own.credulous:
            pulse.note("authservId is not set: nobody is known by a mail, so nobody is heard")
        async with self._opened(readonly=not own.mark_seen) as (box, facts):
            self._facts = facts
            if not facts.idles:
                pulse.note(f"{own.imap.host} has no IDLE; it is asked every {own.poll_s:g} s")
            pulse.connected(Identity(own.address.casefold(), own.name or own.address, own.address))
            await self._reader.run(box, facts, receive, pulse)

    @property
    def _dial(self) -> Dial:
        if self._ports.dial is None:
            raise LinkRefused("this host opens no connections but HTTP")
        return self._ports.dial

    @asynccontextmanager
    async def _opened(self, *, readonly: bool) -> AsyncIterator[tuple[Mailbox, Facts]]:
        """A connection in the folder. Raises LinkLost and LinkRefused."""
        own, server = self._own, self._own.imap
        try:
            secure = server.security == "tls"
            sock = await self._dial.plug(server.host, server.port, self._ports.spawn, tls=secure, via=own.via)
        except Unavailable as fault:
            raise LinkLost(fault.message) from None
        box = Mailbox(server, sock)
        try:
            trust = await self._dial.trust(own.via) if server.security == "starttls" else None
            yield box, await asyncio.to_thread(box.enter, own.folder, trust, readonly=readonly)
        except Unavailable as fault:
            raise LinkLost(fault.message) from None
        finally:
            box.close()

    # ---- sending

    async def send(self, message: Outbound) -> str:
        own = self._own
        known = await self._thread(message)
        files = [(file, await self._file(file)) for file in message.files]
        mail = outgoing.compose(message, From(own.address, own.name, self._ports.clock.now_ms()), known, files)
        data = await asyncio.to_thread(mail.as_bytes)
        if len(data) > own.room * 14 // 10:
            raise SendFailed("too_large", f"the mail has {len(data) / 1e6:.1f} MB")
        if self._ports.dial is None:
            raise SendFailed("refused", "this host opens no connections but HTTP")
        await post(own, self._ports.dial, self._ports.spawn, to=message.address.chat, data=data)
        return message_id(message.key, own.address)

    async def _thread(self, message: Outbound) -> Thread:
        """What is known of the mails before; after a restart the mailbox is asked."""
        ids = [one for one in (message.reply_to, message.address.thread) if one and one.isascii()]
        if (known := self._reader.threads.get(message.address.thread)) or not ids:
            return known or Thread()
        try:
            async with self._opened(readonly=True) as (box, _):
                heads = await asyncio.to_thread(box.heads, ids)
        except (LinkLost, LinkRefused):
            return Thread()
        if not heads:
            return Thread()
        found = await asyncio.to_thread(letter.read, heads)
        self._reader.threads.met(found)
        return thread(found)

    async def _file(self, file: File) -> bytes:
        media, room = self._ports.media, self.limits.file_out
        if media is None:
            raise SendFailed("refused", "this host keeps no files to send")
        if file.size > room:
            raise SendFailed("too_large", f"{file.name} is over {room / 1e6:.0f} MB")
        try:
            return await asyncio.to_thread(media.read, file.path, room)
        except ToolFailed as fault:
            raise SendFailed("refused", f"{file.name} cannot be read: {fault.message}") from None

    async def open_direct(self, user: str) -> Address:
        """A person is their address; a mail to them opens a thread of its own."""
        address = user.strip().casefold()
        if not valid(address):
            raise SendFailed("refused", f"{user[:80]!r} is no e-mail address")
        return Address(CHANNEL, self._account.id, address, "direct")

    # ---- files and facts

    async def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        """The bytes of an attachment, over a connection of its own. Raises SendFailed."""
        if media.size is not None and media.size > limit:
            raise SendFailed("too_large", f"{media.name} is over {limit / 1e6:.0f} MB")
        mail, section, packed = media.ref.split("/", 2)
        validity, _, uid = mail.partition(".")
        try:
            async with self._opened(readonly=True) as (box, facts):
                same = str(facts.validity) == validity
                data = await asyncio.to_thread(box.part, int(uid), section) if same else None
        except (LinkLost, LinkRefused) as fault:
            raise SendFailed("passing", fault.message) from None
        if data is None:
            raise SendFailed("gone", f"the mail with {media.name} is not there any more")
        whole = await asyncio.to_thread(letter.unpacked, data, packed)
        if len(whole) > limit:
            raise SendFailed("too_large", f"{media.name} is over {limit / 1e6:.0f} MB")
        for at in range(0, len(whole), PIECE):
            yield whole[at : at + PIECE]

    def inspect(self) -> Mapping[str, Any]:
        """What is known without asking the server."""
        own, facts = self._own, self._facts
        return {
            "address": own.address,
            "imap": f"{own.imap.host}:{own.imap.port} ({own.imap.security})",
            "smtp": f"{own.smtp.host}:{own.smtp.port} ({own.smtp.security})",
            "folder": own.folder,
            "passwordSet": bool(own.imap.password),
            "authservId": list(own.receivers),
            "believesEveryFrom": own.credulous,
            "idle": facts.idles if facts else None,
        }
