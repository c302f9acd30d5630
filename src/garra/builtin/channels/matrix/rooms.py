"""What is known of each room: who is in it, what they are called, whether it is encrypted.

It is asked of the server once a run, and kept right by what is read from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from garra.builtin.channels.matrix.api import Api, Refused, at
from garra.builtin.channels.matrix.codec import Answered, Place
from garra.builtin.channels.matrix.settings import Settings
from garra.sdk.channel import ChatKind

_REMEMBERED = 2048
_ASIDE = frozenset({403, 404})


@dataclass(slots=True)
class Facts:
    """A room: the names of its members by id, and whether it is encrypted (once it is, it stays so). `asked` are
    people invited to an encrypted one, who are to read what is said from then on.
    """

    names: dict[str, str] = field(default_factory=dict)
    encrypted: bool = False
    asked: set[str] = field(default_factory=set)

    @property
    def readers(self) -> set[str]:
        return self.asked | self.names.keys()


class Rooms:
    """The rooms of one login."""

    def __init__(self, api: Api, own: Settings) -> None:
        self._api, self._own = api, own
        self._known: dict[str, Facts] = {}
        self._said: dict[str, Answered] = {}
        self.locked: set[str] = set()

    async def facts(self, room: str) -> Facts:
        """Raises Refused; a room one is not in has nobody."""
        found = self._known.get(room)
        if found is None:
            found = Facts()
            try:
                told = await self._api.call("GET", at("rooms", room, "joined_members"))
                found.names = {who: _name(one) for who, one in (told.get("joined") or {}).items()}
                await self._api.call("GET", at("rooms", room, "state", "m.room.encryption", ""))
                found.encrypted = True
            except Refused as refused:
                if refused.status not in _ASIDE:
                    raise
            found.encrypted = found.encrypted or room in self.locked
            if found.encrypted and found.names:
                found.asked = await self._asked(room)
            if found.names:
                self._known[room] = found
        return found

    async def _asked(self, room: str) -> set[str]:
        try:
            told = await self._api.call("GET", at("rooms", room, "members"), query={"membership": "invite"})
        except Refused as refused:
            if refused.status not in _ASIDE:
                raise
            return set()
        return {str(one.get("state_key")) for one in told.get("chunk") or () if isinstance(one, Mapping)}

    async def place(self, room: str) -> Place:
        """The room as the codec takes it. Direct is a room of two that has no rules of its own. Raises Refused."""
        facts = await self.facts(room)
        direct = 0 < len(facts.names) <= 2 and room not in self._own.joining.rooms
        kind: ChatKind = "direct" if direct else "group"
        return Place(room, kind, facts.names, self._own.threading(kind))

    def changed(self, room: str, event: Mapping[str, Any]) -> bool:
        """Take note of a state event; whether somebody came or went."""
        facts, content = self._known.get(room), event.get("content")
        if facts is None or not isinstance(content, Mapping):
            return False
        if event.get("type") == "m.room.encryption" and event.get("state_key") == "":
            facts.encrypted = True
        who = event.get("state_key")
        if event.get("type") != "m.room.member" or not isinstance(who, str):
            return False
        before = facts.readers
        (facts.asked.add if content.get("membership") == "invite" else facts.asked.discard)(who)
        if content.get("membership") == "join":
            facts.names[who] = _name(content)
        else:
            facts.names.pop(who, None)
        return before != facts.readers

    def left(self, room: str) -> None:
        self._known.pop(room, None)

    # ---- what was said, for answers to it

    def heard(self, event_id: str, said: Answered) -> None:
        self._said[event_id] = said
        while len(self._said) > _REMEMBERED:
            self._said.pop(next(iter(self._said)))

    def recall(self, event_id: str) -> Answered | None:
        return self._said.get(event_id)


def _name(found: Any) -> str:
    name = found.get("display_name") or found.get("displayname") if isinstance(found, Mapping) else ""
    return name if isinstance(name, str) else ""
