"""Where the reading stands, on disk: the last message stored of each known place, to ask from after an outage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

import msgspec

from garra.core.value import frozen
from garra.sdk.encoding import encoded

PLACES = 200


class Spot(NamedTuple):
    """A chat, or a thread of it."""

    chat: str
    thread: str = ""


@frozen
class Position:
    """`team` is the workspace these chats are in."""

    team: str = ""
    last: Mapping[Spot, str] = field(default_factory=dict)

    def text(self) -> str:
        return encoded({"team": self.team, "last": [[*spot, ts] for spot, ts in self.last.items()]}).decode()

    def heard(self, spot: Spot, ts: str) -> Position:
        """A message is stored; the places longest silent are forgotten."""
        kept = {other: its for other, its in self.last.items() if other != spot}
        known = self.last.get(spot, "")
        kept[spot] = ts if moment(ts) > moment(known) else known
        while len(kept) > PLACES:
            kept.pop(next(iter(kept)))
        return Position(self.team, kept)


def position(text: str | None, team: str) -> Position:
    """The stored position; the beginning where there is none, it is another workspace's, or it cannot be read."""
    try:
        found = msgspec.json.decode(text or "{}")
        if found["team"] != team:
            return Position(team)
        return Position(team, {Spot(str(chat), str(thread)): str(ts) for chat, thread, ts in found["last"]})
    except (msgspec.DecodeError, TypeError, KeyError, ValueError):
        return Position(team)


def moment(ts: str) -> tuple[int, int]:
    """A message's number as it is compared: seconds, and millionths that Slack counts. None is before all."""
    seconds, _, rest = ts.partition(".")
    return (int(seconds), int(rest or 0)) if seconds.isdecimal() and rest.isdecimal() else (0, 0)


def ms(ts: str) -> int:
    """Milliseconds since 1970."""
    seconds, rest = moment(ts)
    return seconds * 1000 + rest // 1000
