"""One account on an IRC network: `sdk.channel.Channel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.builtin.channels.irc.codec import CHANNEL
from garra.builtin.channels.irc.line import fold, spoken
from garra.builtin.channels.irc.session import Place, Session
from garra.builtin.channels.irc.settings import settings
from garra.builtin.channels.irc.wire import QUIET_S, Wire
from garra.core.errors import Unavailable
from garra.sdk.channel import (
    Account,
    Address,
    Identity,
    Limits,
    LinkLost,
    LinkRefused,
    Outbound,
    Ports,
    Pulse,
    Receive,
    SendFailed,
)

_NOT_IN_NAMES = frozenset(" ,\x00\x07\r\n")


class Irc:
    """A nick of ours on a network. Making it touches no network."""

    def __init__(self, account: Account, ports: Ports) -> None:
        self._account, self._ports = account, ports
        self._own = settings(account)
        self._session: Session | None = None
        self.limits = Limits(
            text=self._own.text,
            unit="bytes",
            formats=("irc", "plain"),
            per_second=1.0,
            lines=True,
            beat_s=QUIET_S,
        )

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        own, ports = self._own, self._ports
        if ports.dial is None:
            raise LinkRefused("this host opens no connections but HTTP")
        try:
            stream = await ports.dial.open(own.host, own.port, tls=own.tls, via=own.via)
        except Unavailable as fault:
            raise LinkLost(fault.message) from None
        wire = Wire(stream, ports.clock)
        session = Session(wire, Place(self._account.id, own, ports.clock, ports.cursor), pulse)
        reading = ports.spawn(session.read(), f"irc {self._account.id}")
        try:
            await session.settle()
            self._session = session
            pulse.connected(Identity(session.me.same(session.me.nick), session.me.nick, session.me.nick))
            await session.serve(receive)
        finally:
            self._session = None
            await wire.end(LinkLost("the connection was given up"))
            reading.cancel()

    async def send(self, message: Outbound) -> str:
        """All its lines at once, as far as the pace allows."""
        session = self._session
        if session is None:
            raise SendFailed("passing", "there is no connection")
        target = await self._target(session, message.address)
        lines = spoken("\n".join([message.text, *_told(message)]), min(self._own.text, session.room_for(target)))
        if not lines:
            raise SendFailed("refused", "there is nothing to send")
        return await session.say(target, lines, message.reply_to)

    async def _target(self, session: Session, address: Address) -> str:
        """The room, or the nick that the person has at this moment. Raises SendFailed."""
        chat = address.chat
        if not chat or chat[0] == ":" or _NOT_IN_NAMES & set(chat):
            raise SendFailed("refused", f"{chat!r} is no name of IRC")
        if session.me.room(chat):
            return chat
        try:
            nick = await session.people.nick(chat)
        except (LinkLost, TimeoutError):
            raise SendFailed("passing", "the connection broke") from None
        if not nick:
            raise SendFailed("gone", f"{chat} is not on the network now, or not logged in under a nick known here")
        return nick

    async def open_direct(self, user: str) -> Address:
        """A person is their account at the network's services."""
        return Address(CHANNEL, self._account.id, fold(user.strip()), "direct")

    def inspect(self) -> Mapping[str, Any]:
        """What is known without asking the server."""
        own, session = self._own, self._session
        return {
            "server": f"{own.host}:{own.port}",
            "tls": own.tls,
            "passwordSet": bool(own.password),
            "nickservSet": own.services.on,
            "nick": session.me.nick if session else None,
            "rooms": sorted(session.rooms) if session else [],
            "abilities": sorted(session.caps) if session else [],
            "history": session.remembers if session else None,
        }


def _told(message: Outbound) -> list[str]:
    """What IRC cannot carry, in words."""
    shown = [f"[{button.label}]" for row in message.buttons for button in row]
    return [*(f"[{file.name}: IRC carries no files]" for file in message.files), " ".join(shown)]
