"""The reading loop: each envelope stored before Slack is told; what an outage swallowed is asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from garra.builtin.channels.slack import faults
from garra.builtin.channels.slack.api import Api, Refused
from garra.builtin.channels.slack.codec import Me, Reader
from garra.builtin.channels.slack.missed import History
from garra.builtin.channels.slack.people import People
from garra.builtin.channels.slack.position import Position, Spot, moment, position
from garra.builtin.channels.slack.settings import Settings
from garra.builtin.channels.slack.sockets import Came, Gone, Sockets, Spent, ended
from garra.core.value import frozen
from garra.sdk.channel import Identity, Ignored, Inbound, LinkLost, Ports, Pulse, receive_all

RECENT = 50
"""So many of the places last spoken in are looked through after an outage."""
_STORED = 2_000
"""So many events are known to be stored."""

Take = Callable[[Inbound | Ignored], Awaitable[None]]
"""Returns when the event is stored."""


@frozen
class Parts:
    """What reading works with."""

    own: Settings
    api: Api
    account: str
    ports: Ports
    take: Take


class Reading:
    """One account's, until cancelled."""

    def __init__(self, parts: Parts, pulse: Pulse) -> None:
        self._parts, self._pulse = parts, pulse
        self._people = People(parts.api)
        self._history = History(parts.api, parts.ports.clock)
        self._stored: dict[tuple[str, str], None] = {}
        self.me = Me("")
        self.here = Position()

    async def run(self) -> None:
        """Raises LinkLost and LinkRefused."""
        parts = self._parts
        self.me = await self._whoami()
        self.here = position(await parts.ports.cursor.get(), self.me.team)
        sockets = Sockets(parts.own, parts.api, parts.ports, self._pulse)
        try:
            await sockets.open()
            self._pulse.connected(Identity(self.me.user, self.me.name, self.me.name))
            await self._catch_up()  # after: an event is stored under the name of who heard it
            while True:
                await self._batch(sockets)
        finally:
            await sockets.close()

    async def _whoami(self) -> Me:
        try:
            told = await self._parts.api.call("auth.test")
            return Me(
                str(told["user_id"]), str(told.get("bot_id") or ""), str(told["team_id"]), str(told.get("user") or "")
            )
        except Refused as refused:
            raise faults.link_lost(refused) from None
        except KeyError:
            raise LinkLost("Slack does not say who we are") from None

    async def _batch(self, sockets: Sockets) -> None:
        before, together = self.here, list[Came]()
        try:
            for found in await sockets.next():
                if isinstance(found, Came) and "envelope_id" in found.frame:
                    together.append(found)
                    continue
                await self._envelopes(sockets, together)
                together = []
                await self._other(sockets, found)
            await self._envelopes(sockets, together)
        finally:
            if self.here is not before:
                await self._save()

    async def _envelopes(self, sockets: Sockets, together: Sequence[Came]) -> None:
        """Store what came, with one write, and tell Slack of each that is stored."""
        said = [(str(came.frame.get("type")), came.frame.get("payload")) for came in together]
        stored, fault = await self._store(said)
        for came in together[:stored]:
            await sockets.acknowledge(came)
        if fault is not None:
            raise fault

    async def _other(self, sockets: Sockets, found: Came | Spent | Gone) -> None:
        match found:
            case Came(frame=frame) if frame.get("type") == "disconnect":
                await self._replaced(sockets, found)
            case Spent():
                await sockets.drop(found.socket)
            case Gone() if found.socket is sockets.current:
                raise found.why

    async def _replaced(self, sockets: Sockets, came: Came) -> None:
        """Slack is about to end this connection: another stands before it goes."""
        why = ended(came.frame)
        if why is not None:
            raise why
        if came.socket is sockets.current:
            await sockets.open()

    async def _save(self) -> None:
        await self._parts.ports.cursor.set(self.here.text())

    async def _store(self, said: Sequence[tuple[str, Any]]) -> tuple[int, Exception | None]:
        """How many, from the front, are stored, and what kept the next from being."""
        reader = Reader(self._parts.account, self.me, self._parts.own.reactions)
        read = [reader.read(kind, payload, await self._people.facts(kind, payload)) for kind, payload in said]
        known = set(self._stored)
        fresh: list[int] = []
        for at, found in enumerate(read):
            name = (found.address.chat, found.id) if isinstance(found, Inbound) else None
            if name is None or name not in known:  # a mention comes twice, and the history may tell of it as well
                fresh.append(at)
            if name is not None:
                known.add(name)
        count, fault = await receive_all(self._parts.take, [read[at] for at in fresh])
        for at in fresh[:count]:
            self._known(read[at])
        return (len(read) if fault is None else fresh[count]), fault

    def _known(self, found: Inbound | Ignored) -> None:
        """It is stored."""
        if not isinstance(found, Inbound):
            return
        self._stored[found.address.chat, found.id] = None
        while len(self._stored) > _STORED:
            self._stored.pop(next(iter(self._stored)))
        if found.event == "message" and moment(found.id) > (0, 0):
            self.here = self.here.heard(Spot(found.address.chat, found.address.thread), found.id)

    async def _catch_up(self) -> None:
        """The places known from before are asked for what was said since their last message."""
        for spot, last in tuple(self.here.last.items())[-RECENT:]:
            before = self.here
            async for message in self._history.since(spot, last):
                _, fault = await self._store([("events_api", _told(message))])
                if fault is not None:
                    raise fault
            if self.here is not before:
                await self._save()


def _told(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as its event would have been."""
    return {
        "event_id": f"history:{message.get('channel')}:{message.get('ts')}",
        "event": {**message, "type": "message"},
    }
