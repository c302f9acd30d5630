"""One session: rooms entered, what was missed taken from the archives, then what comes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any
from xml.etree.ElementTree import Element

import msgspec

from garra.builtin.channels.xmpp.codec import Heard, Place, archive_id, bare, read, resource, stamp
from garra.builtin.channels.xmpp.rooms import HIDDEN, Rooms
from garra.builtin.channels.xmpp.settings import Settings
from garra.builtin.channels.xmpp.wire import CARBON, MAM, Ack, Refused, Wire
from garra.core.value import frozen
from garra.sdk.channel import Cursor, Ignored, Inbound, LinkLost, Pulse, Receive, receive_all
from garra.sdk.ports import Clock

QUIET_S = 30.0
ROOM_CHECK_S = 300.0
SLACK_MS = 300_000
"""So far the server's clock may be from ours."""
TOGETHER = 50
"""So many things that have come are looked at in one go."""
ARCHIVE = MAM.strip("{}")

Item = Ack | Heard | LinkLost


@frozen
class Ground:
    """What a session stands on."""

    account: str
    own: Settings
    clock: Clock
    cursor: Cursor


class Marks:
    """How far each archive was read: its last id, empty where it was empty, and when that was, as written there."""

    def __init__(self, text: str | None) -> None:
        self._at: dict[str, tuple[str, str]] = {}
        try:
            found = msgspec.json.decode(text or "{}", type=dict[str, tuple[str, str]])
        except msgspec.DecodeError:
            found = {}
        self._at.update(found)

    def get(self, owner: str) -> tuple[str, str] | None:
        return self._at.get(owner)

    def set(self, owner: str, archive: str, at: str) -> None:
        self._at[owner] = (archive, at or (self._at.get(owner) or ("", ""))[1])

    def text(self) -> str:
        return msgspec.json.encode(self._at).decode()


class Session:
    """A stream in use. `run` reads; anybody may send meanwhile."""

    def __init__(self, wire: Wire, ground: Ground, pulse: Pulse) -> None:
        self.wire, self._ground, self._pulse = wire, ground, pulse
        self.rooms: Rooms = wire.rooms
        self._marks = Marks(None)
        self._archive = False
        self._told: set[str] = set()
        self._checked = ground.clock.monotonic()

    async def settle(self) -> None:
        """Be there, and enter the rooms. Raises LinkLost."""
        wire, own = self.wire, self._ground.own
        self._marks = Marks(await self._ground.cursor.get())
        can = await wire.features(own.jid)
        self._archive = ARCHIVE in can
        if not self._archive:
            self._once(
                "archive", f"{own.domain} keeps no archive: what is said between a crash and its end may be lost"
            )
        if CARBON.strip("{}") in await wire.features(own.domain):
            await self._quietly(Element(f"{CARBON}enable"))
        wire.send(Element("{jabber:client}presence"))
        for room, password in own.rooms:
            await self._enter(room, password)

    async def _enter(self, room: str, password: str) -> None:
        if fault := await self.rooms.enter(self.wire.send, room, self._ground.own.nick, password):
            self._pulse.note(f"the room {room} cannot be entered: {fault}"[:300])
            return
        can = await self.wire.features(room)  # asked inside: a room may come into being by being entered
        if HIDDEN in can:
            self.rooms.marking.add(room)
        if ARCHIVE in can:
            self.rooms.archives.add(room)
        if "muc_nonanonymous" in can:
            self.rooms.open.add(room)

    async def _quietly(self, payload: Element) -> None:
        try:
            await self.wire.ask("set", None, payload)
        except Refused:
            return

    # ---- reading

    async def run(self, receive: Receive) -> None:
        """Until the stream ends. Raises LinkLost, and what `receive` raises."""
        if self._archive:
            await self._catch_up(self._ground.own.jid, receive)
        for room in sorted(self.rooms.archives & self.rooms.nicks.keys()):
            await self._catch_up(room, receive)
        self._pulse.alive()
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    item = await self.wire.queue.get()
            except TimeoutError:
                await self._look()
                continue
            for each in self._together(item):
                match each:
                    case Ack(handled):
                        self.wire.acknowledge(handled)
                    case LinkLost():
                        raise each
                    case _:
                        await self._store(each, receive)

    def _together(self, item: Item) -> Iterator[Ack | LinkLost | list[Heard]]:
        """What has come by now, in its order: messages that follow each other go together."""
        waiting, heard = [item], list[Heard]()
        while len(waiting) < TOGETHER and not self.wire.queue.empty():
            waiting.append(self.wire.queue.get_nowait())
        for each in waiting:
            if isinstance(each, Heard):
                heard.append(each)
                continue
            if heard:
                yield heard
                heard = []
            yield each
        if heard:
            yield heard

    async def _look(self) -> None:
        """Nothing came for a while: is the server there, and are we still in the rooms (XEP-0410)?"""
        await self.wire.ping()
        self._pulse.alive()
        now = self._ground.clock.monotonic()
        if now - self._checked < ROOM_CHECK_S:
            return
        self._checked = now
        for room, nick in tuple(self.rooms.nicks.items()):
            try:
                await self.wire.ask("get", f"{room}/{nick}", Element("{urn:xmpp:ping}ping"))
            except Refused as refused:
                if "not-acceptable" in str(refused):
                    raise LinkLost(f"the room {room} has forgotten the bot") from None

    async def _catch_up(self, owner: str, receive: Receive) -> None:
        """What an archive has behind our mark; without one, the present is taken as the mark."""
        mark = self._marks.get(owner)
        if mark is None:
            await self._begin(owner)
            return
        where: Mapping[str, str] = {"after": mark[0]} if mark[0] else {}
        for number in count(1):
            try:
                page = await self.wire.page(owner, f"missed-{number}", **where)
            except Refused as refused:
                if number > 1 or not mark[1] or "after" not in where:
                    self._once(f"archive {owner}", f"the archive of {owner} cannot be read: {refused}"[:300])
                    await self._begin(owner)
                    return
                where = {"start": mark[1]}  # it keeps that message no more
                continue
            await self._store(page.items, receive, owner)
            if page.complete or not page.items:
                return
            where = {"after": page.items[-1].archive}

    async def _begin(self, owner: str) -> None:
        """Take the end of an archive as our mark."""
        try:
            page = await self.wire.page(owner, "last", before="", most="1")
        except Refused:
            return
        last = page.items[-1] if page.items else None
        self._marks.set(owner, last.archive if last else "", last.at if last else "")
        await self._ground.cursor.set(self._marks.text())

    async def _store(self, heard: Sequence[Heard], receive: Receive, owner: str = "") -> None:
        """With one write; the mark moves behind those that are stored. Raises what kept the next from being."""
        place = Place(self._ground.account, self._ground.own.jid, self.rooms.nicks, self.rooms.marking)
        now = self._ground.clock.now_ms()
        events = [read(each, place, now) for each in heard]
        for event in events:
            self._tell(event)
        stored, fault = await receive_all(receive, events)
        if sum(self._moved(each, owner) for each in heard[:stored]):
            await self._ground.cursor.set(self._marks.text())
        self._pulse.alive()
        if fault is not None:
            raise fault

    def _moved(self, heard: Heard, owner: str) -> bool:
        """Whether the mark of its archive is now behind it."""
        chat = bare(heard.xml.get("from", ""))
        owner = owner or (chat if heard.xml.get("type") == "groupchat" else self._ground.own.jid)
        archived = archive_id(heard, owner)
        if not archived or self._marks.get(owner) is None:
            return False
        self._marks.set(owner, archived, heard.at or stamp(self._ground.clock.now_ms() - SLACK_MS))
        return True

    def _tell(self, event: Inbound | Ignored) -> None:
        if isinstance(event, Ignored) and event.reason == "encrypted" and event.address:
            self._once("sealed", f"{event.address.chat} writes encrypted (OMEMO), which the bot cannot read")
        if isinstance(event, Inbound) and not event.sender.id and event.mentioned and not event.own:
            nick = resource(event.sender.handle)
            self._once(event.address.chat, f"in {event.address.chat} nobody knows who {nick} is: not heard")

    def _once(self, what: str, line: str) -> None:
        if what not in self._told and len(self._told) < 50:
            self._told.add(what)
            self._pulse.note(line)

    def told(self) -> Mapping[str, Any]:
        return {"rooms": sorted(self.rooms.nicks), "archive": self._archive}
