"""The time in front of a user's words, as the model sees it: `[Fri 2026-10-09 14:03 CEST] hello`.

Stored text stays clean; the stamp is made from the stored time each time, so a history always renders alike.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, tzinfo

from garra.core.messages import Text, User
from garra.core.patterns import later

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_STAMPED = later(r"\s*\[[^\]\n]{0,80}\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}[^\]\n]{0,40}\]")


def moment(at_ms: int, zone: tzinfo = UTC) -> str:
    """`Fri 2026-10-09 14:03 CEST`; `at_ms` in milliseconds since 1970."""
    then = datetime.fromtimestamp(at_ms / 1000, zone)
    return f"{DAYS[then.weekday()]} {then:%Y-%m-%d %H:%M %Z}"


def stamped(message: User, zone: tzinfo = UTC) -> User:
    """The message with its time in front of its first words; unchanged when it has none, or a time already."""
    for index, part in enumerate(message.content):
        if isinstance(part, Text) and part.text.strip():
            if _STAMPED.match(part.text):
                return message
            words = Text(f"[{moment(message.timestamp, zone)}] {part.text}")
            return replace(message, content=(*message.content[:index], words, *message.content[index + 1 :]))
    return message
