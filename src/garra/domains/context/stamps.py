"""Puts the time in front of users' words, for a history that grows: what was stamped once is not stamped again."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from garra.core.messages import User
from garra.core.stamps import stamped
from garra.sdk.written import Messages, shared


def zone(name: str) -> tzinfo:
    """The time zone of this name, UTC where there is none. Reads files: call it in a thread."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


class Stamps:
    """One session's stamped history."""

    def __init__(self, zone: tzinfo = UTC) -> None:
        self._zone = zone
        self._plain: Messages = ()
        self._stamped: Messages = ()

    def apply(self, messages: Messages) -> Messages:
        """The history as a model sees it. Where it begins with the one before, only what is new costs work."""
        known = shared(messages, self._plain)
        fresh = (stamped(one, self._zone) if isinstance(one, User) else one for one in messages[known:])
        self._plain, self._stamped = messages, (*self._stamped[:known], *fresh)
        return self._stamped
