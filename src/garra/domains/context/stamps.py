"""Puts the time in front of users' words, for a history that grows: what was stamped once is not stamped again."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from garra.core.messages import Message, User
from garra.core.stamps import stamped


def zone(name: str) -> tzinfo:
    """The time zone of this name, UTC where there is none. Reads files: call it in a thread."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


class Stamps:
    """One session's stamped history. Costs a comparison by identity for each message it knows."""

    def __init__(self, zone: tzinfo = UTC) -> None:
        self._zone = zone
        self._plain: list[Message] = []
        self._stamped: list[Message] = []

    def apply(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The history as a model sees it."""
        known = 0
        for plain, message in zip(self._plain, messages, strict=False):
            if plain is not message:
                break
            known += 1
        del self._plain[known:], self._stamped[known:]
        fresh = messages[known:]
        self._plain += fresh
        self._stamped += [stamped(one, self._zone) if isinstance(one, User) else one for one in fresh]
        return tuple(self._stamped)
