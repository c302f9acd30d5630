"""The reading loop. The server's token is stored only after everything that came with it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from garra.builtin.channels.matrix import faults
from garra.builtin.channels.matrix.api import Api, Refused, at
from garra.builtin.channels.matrix.codec import MESSAGES, NOBODY, Answered, Reader, target
from garra.builtin.channels.matrix.invites import Door, invited
from garra.builtin.channels.matrix.position import Invite, Position, position
from garra.builtin.channels.matrix.rooms import Rooms
from garra.builtin.channels.matrix.settings import Settings
from garra.sdk.channel import Cursor, Ignored, Inbound, Pulse, Receive, receive_all

HOLD_S = 30
"""How long the server may keep a sync open when nothing happens."""
SLACK_S = 20.0
FIRST_S = 180.0
"""How long the first sync may take, which a big account makes slow."""
TOGETHER = 100
"""So many events of a sync are stored with one write."""
PAGE, PAGES = 100, 50
"""What was missed in one room is fetched so far back."""

Event = Mapping[str, Any]


class Opens(Protocol):
    """What reads encrypted events."""

    async def feed(self, found: Mapping[str, Any]) -> None:
        """Take the keys that came with a sync. Raises Refused."""
        ...

    async def opened(self, room: str, event: Event) -> Event | str:
        """The event that is in an encrypted one, or why it cannot be read."""
        ...

    async def keep(self, room: str, event: Event, why: str) -> bool:
        """Keep one that cannot be read until its key comes; whether it is a new one."""
        ...

    async def late(self) -> Sequence[tuple[str, Event, Event]]:
        """Kept ones that can be read now: the room, the event as it came, and what is in it."""
        ...

    async def forget(self, event: Event) -> None: ...

    async def member(self, room: str) -> None:
        """Somebody came or went."""
        ...


@dataclass
class Reading:
    """Reads one account until cancelled."""

    api: Api
    own: Settings
    reader: Reader
    rooms: Rooms
    door: Door
    cursor: Cursor
    receive: Receive
    pulse: Pulse
    opens: Opens | None = None
    _told: set[str] = field(default_factory=set)
    _read: list[Inbound | Ignored] = field(default_factory=list)

    async def run(self) -> None:
        """Raises LinkLost."""
        here = position(await self.cursor.get(), self.reader.me.id)
        hold, wait = 0, FIRST_S
        while True:
            if here.open:
                here = await self._answer(here)
            try:
                found = await self._poll(here.since, hold, wait)
            except Refused as refused:
                here = self._lost(refused, here)
                hold, wait = 0, FIRST_S
                continue
            self.pulse.alive()
            hold, wait = HOLD_S, HOLD_S + SLACK_S
            self._read.clear()
            try:
                here = await self._take(found, here)
            except Refused as refused:
                raise faults.lost(refused) from None

    def _lost(self, refused: Refused, here: Position) -> Position:
        """A server that does not know the token any more is read from its present on. Else raises LinkLost."""
        if not here.since or refused.status != 400:
            raise faults.lost(refused) from None
        self.pulse.note("The homeserver no longer knows where reading stood; what was said meanwhile may be missing.")
        return Position(here.user)

    async def _poll(self, since: str, hold: int, wait: float) -> Mapping[str, Any]:
        limit = PAGE if since else max(self.own.first, 1)
        asked = {"timeout": hold * 1000, "filter": json.dumps(_filter(limit))} | ({"since": since} if since else {})
        found = await self.api.call("GET", "/sync", query=asked, wait=wait)
        if not isinstance(found.get("next_batch"), str) or not found["next_batch"]:
            raise Refused("/sync", "the answer names no next_batch", 502)
        return found

    async def _take(self, found: Mapping[str, Any], here: Position) -> Position:
        """Store everything, then the position."""
        if self.opens is not None:
            await self.opens.feed(found)
            await self._late(self.opens)
        rooms, first = _dict(found.get("rooms")), not here.since
        for room, body in _dict(rooms.get("join")).items():
            await self._room(room, _dict(body), here.since)
        for room, body in _dict(rooms.get("leave")).items():
            await self._left(room, _dict(body), here.since)
        await self._store()
        asked = (invited(room, _dict(body), here.user) for room, body in _dict(rooms.get("invite")).items())
        waiting = tuple(invite for invite in asked if invite is not None)
        after = Position(here.user, found["next_batch"])
        if first and waiting:
            after = Position(here.user, found["next_batch"], waiting)
        else:
            await self._invites(waiting)
        await self.cursor.set(after.text())
        return after

    async def _answer(self, here: Position) -> Position:
        await self._invites(here.open)
        after = Position(here.user, here.since)
        await self.cursor.set(after.text())
        return after

    async def _invites(self, waiting: Iterable[Invite]) -> None:
        for invite in waiting:
            await self.door.answer(invite, self.receive, self.pulse)

    # ---- one room

    async def _room(self, room: str, body: Mapping[str, Any], since: str) -> None:
        """What happened in a room, in order: what the server left out is fetched first."""
        timeline = _dict(body.get("timeline"))
        events = _events(timeline)
        for event in _events(_dict(body.get("state"))):
            await self._changed(room, event)
        if not since:
            events = events[-self.own.first :] if self.own.first else []
        elif (entered := _entered(events, self.reader.me.id)) is not None:
            before = events[:entered]
            if not any(self._asked_in(event) for event in before):
                before = await self._missed(room, timeline, "", self._asked_in) + before
            start = next((n for n, event in enumerate(before) if self._asked_in(event)), len(before))
            events = before[start:] + events[entered:]
        elif timeline.get("limited") is True:
            events = await self._missed(room, timeline, since, lambda _: False) + events
        for event in events:
            await self._event(room, event)

    def _asked_in(self, event: Event) -> bool:
        """Whether it is our invitation: what was said before it was not said to us."""
        return (
            event.get("type") == "m.room.member"
            and event.get("state_key") == self.reader.me.id
            and _dict(event.get("content")).get("membership") == "invite"
        )

    async def _missed(
        self, room: str, timeline: Mapping[str, Any], since: str, ends: Callable[[Event], bool]
    ) -> list[Event]:
        """Events before a timeline, oldest first, back to `since` or to the first that `ends`. Raises Refused."""
        back: list[Event] = []
        here = str(timeline.get("prev_batch") or "")
        for _ in range(PAGES):
            if not here:
                break
            asked = {"dir": "b", "from": here, "limit": PAGE} | ({"to": since} if since else {})
            try:
                found = await self.api.call("GET", at("rooms", room, "messages"), query=asked)
            except Refused as refused:
                if refused.status not in {400, 403, 404}:
                    raise
                self.pulse.note(f"What was missed in {room} cannot be fetched: {refused.said}.")
                break
            self.pulse.alive()
            chunk = [event for event in found.get("chunk") or () if isinstance(event, dict)]
            back += chunk
            if not chunk or any(ends(event) for event in chunk):
                break
            here = str(found.get("end") or "")
        else:
            self.pulse.note(f"More than {PAGE * PAGES} messages were missed in {room}; the older ones are not read.")
        return back[::-1]

    async def _left(self, room: str, body: Mapping[str, Any], since: str) -> None:
        self.rooms.left(room)
        for event in _events(_dict(body.get("timeline"))) if since else ():
            place = await self.rooms.place(room)
            if event.get("type") == "m.room.member" and event.get("state_key") == self.reader.me.id:
                await self._put(self.reader.read(event, place))
            else:
                await self._put(self.reader.ignored(place, event, "left"))

    async def _put(self, read: Inbound | Ignored) -> None:
        """Take an event of this sync in its order; it is stored with the others, before the token is."""
        self._read.append(read)
        if len(self._read) >= TOGETHER:
            await self._store()

    async def _store(self) -> None:
        """Raises what kept one of them from being stored: then all of the sync come again."""
        together, self._read = self._read, []
        _, fault = await receive_all(self.receive, together)
        if fault is not None:
            raise fault

    # ---- one event

    async def _event(self, room: str, event: Event) -> None:
        place = await self.rooms.place(room)
        await self._changed(room, event)
        if event.get("type") != "m.room.encrypted":
            await self._deliver(room, event)
        elif "ciphertext" not in _dict(event.get("content")):
            await self._put(self.reader.ignored(place, event, "redacted"))
        elif self.opens is None:
            self._note(room, f"{room} is encrypted and encryption is off: its messages cannot be read.")
            await self._put(self.reader.ignored(place, event, "encrypted"))
        else:
            await self._open(room, event, self.opens)

    async def _open(self, room: str, event: Event, opens: Opens) -> None:
        found = await opens.opened(room, event)
        if not isinstance(found, str):
            await self._deliver(room, found)
            return
        if event.get("sender") == self.reader.me.id:  # what another login of the account said is nothing to answer
            return
        place = await self.rooms.place(room)
        if await opens.keep(room, event, found):
            self.pulse.note(f"A message of {event.get('sender')} in {room} cannot be read: {found}.")
        await self._put(self.reader.ignored(place, event, f"undecryptable: {found}"))

    async def _late(self, opens: Opens) -> None:
        """Messages whose key has come since."""
        came = await opens.late()
        for room, _, found in came:
            await self._deliver(room, found)
        await self._store()
        for _, event, _ in came:
            await opens.forget(event)

    async def _changed(self, room: str, event: Event) -> None:
        if self.rooms.changed(room, event) and self.opens is not None:
            await self.opens.member(room)

    async def _deliver(self, room: str, event: Event) -> None:
        place = await self.rooms.place(room)
        mine = event.get("sender") == self.reader.me.id
        kind = event.get("type")
        if mine and (kind == "m.room.redaction" or kind == "m.reaction" or _edits(event)):
            return  # what the bot did to messages is no message
        answered = NOBODY
        if kind == "m.reaction" and self.own.reactions == "off":
            await self._put(self.reader.ignored(place, event, "reactions-off"))
            return
        if not mine and (wanted := target(event)):
            answered = await self._answered(room, wanted)
        if kind == "m.reaction" and self.own.reactions == "own" and answered.sender != self.reader.me.id:
            await self._put(self.reader.ignored(place, event, "reaction-elsewhere"))
            return
        read = self.reader.read(event, place, answered)
        self._remember(read)
        await self._put(read)

    def _remember(self, read: Inbound | Ignored) -> None:
        if isinstance(read, Inbound) and read.event == "message":
            self.rooms.heard(read.id, Answered(read.sender.id, read.text))

    async def _answered(self, room: str, event_id: str) -> Answered:
        """The message with that id, as far as the server shows it. Raises Refused where it could not be asked."""
        if (known := self.rooms.recall(event_id)) is not None:
            return known
        try:
            event: Event = await self.api.call("GET", at("rooms", room, "event", event_id))
        except Refused as refused:
            if refused.status not in {400, 403, 404}:
                raise
            return NOBODY
        sender = str(event.get("sender") or "")
        if event.get("type") == "m.room.encrypted" and self.opens is not None:
            opened = await self.opens.opened(room, event)
            event = {} if isinstance(opened, str) else opened
        read = self.reader.read(event, await self.rooms.place(room)) if str(event.get("type")) in MESSAGES else None
        said = Answered(sender, read.text if isinstance(read, Inbound) else "")
        self.rooms.heard(event_id, said)
        return said

    def _note(self, about: str, line: str) -> None:
        """Tell the owner once a run."""
        if about not in self._told:
            self._told.add(about)
            self.pulse.note(line)


def _filter(limit: int) -> Mapping[str, Any]:
    """What of the server's state is wanted. Nobody's presence, typing or receipts are."""
    nothing: Mapping[str, Any] = {"types": []}
    room = {
        "timeline": {"limit": limit},
        "state": {"lazy_load_members": True},
        "ephemeral": nothing,
        "account_data": nothing,
    }
    return {"room": room, "presence": nothing, "account_data": nothing}


def _entered(events: Sequence[Event], me: str) -> int | None:
    """Where in a timeline we came in; None when we were there before."""
    for number, event in enumerate(events):
        if event.get("type") != "m.room.member" or event.get("state_key") != me:
            continue
        before = _dict(_dict(event.get("unsigned")).get("prev_content") or event.get("prev_content"))
        if _dict(event.get("content")).get("membership") == "join" and before.get("membership") != "join":
            return number
    return None


def _edits(event: Event) -> bool:
    return _dict(_dict(event.get("content")).get("m.relates_to")).get("rel_type") == "m.replace"


def _events(part: Mapping[str, Any]) -> list[Event]:
    return [event for event in part.get("events") or () if isinstance(event, dict)]


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
