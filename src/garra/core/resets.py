"""When a conversation begins anew by itself, and what its new beginning is told of the old one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal

from garra.core import taint
from garra.core.clip import clip
from garra.core.messages import Assistant, Message, User
from garra.core.taint import Mark
from garra.core.value import frozen

Why = Literal["", "daily", "idle"]
Kind = Literal["direct", "group", "thread"]

IDLE_MINUTES: Final = 60.0
"""How long is idle where nothing is said."""
UNDO_MS: Final = 24 * 3_600_000
"""How long the conversation before can be had back."""
LINES: Final = 6
LINE: Final = 400
BRIEF: Final = 2_000
"""A digest has so many of the last lines, each of so many characters, and so many of an older summary."""


@frozen
class Policy:
    """`at_hour` is an hour of the day, 0 to 23, by the gateway's own clock; `idle_minutes` None: no such limit."""

    mode: Literal["none", "daily", "idle"] = "none"
    at_hour: int = 4
    idle_minutes: float | None = None


NEVER: Final = Policy()


@frozen
class Policies:
    """What holds for all, for a kind of chat, for a channel; the narrowest that is set holds."""

    usual: Policy = NEVER
    by_type: Mapping[str, Policy] = {}
    by_channel: Mapping[str, Policy] = {}

    def of(self, kind: Kind, channel: str) -> Policy:
        return self.by_channel.get(channel) or self.by_type.get(kind) or self.usual


def due(policy: Policy, *, started: int, last: int, now: int, zone: tzinfo | None = UTC) -> Why:
    """Why a conversation begins anew with the message that comes now; empty where it goes on.

    Milliseconds since 1970: when it `started`, and when a person last said something in it. A day ends at the policy's
    hour; where both limits are set, the first one reached counts.
    """
    if policy.mode == "none":
        return ""
    idle = policy.idle_minutes if policy.idle_minutes is not None or policy.mode == "daily" else IDLE_MINUTES
    if idle is not None and now - max(last, started) >= idle * 60_000:
        return "idle"
    return "daily" if policy.mode == "daily" and started < day(now, policy.at_hour, zone) else ""


def day(now: int, hour: int, zone: tzinfo | None) -> int:
    """When the day began that `now` is in, days beginning at `hour`; without a zone by the machine's own."""
    local = datetime.fromtimestamp(now / 1000, zone)
    begun = local.replace(hour=hour, minute=0, second=0, microsecond=0)
    if begun.timestamp() * 1000 > now:
        begun = (local - timedelta(days=1)).replace(hour=hour, minute=0, second=0, microsecond=0)
    return round(begun.timestamp() * 1000)


@frozen
class Digest:
    """What the new conversation is told of the old one; `marks` are those of all that its words may come from."""

    text: str
    marks: tuple[Mark, ...] = ()


HEAD: Final = "[The conversation before this one has ended; in brief:]"


def digest(messages: Sequence[Message], *, summed: bool = False) -> Digest | None:
    """Of the messages that a model was shown last; None where nothing was said. `summed`: the first is a summary."""
    brief = messages[0] if summed and messages else None
    rest = [each for each in messages[1 if brief else 0 :] if isinstance(each, User | Assistant) and each.text.strip()]
    kept = rest[-LINES:]
    if not kept and brief is None:
        return None
    lines = [HEAD]
    if brief is not None:
        lines.append(clip(brief.text, BRIEF)[0])
    lines += [f"{'They' if isinstance(each, User) else 'You'}: {_line(each.text)}" for each in kept]
    marks = tuple(dict.fromkeys(mark for each in messages for mark in taint.of(each.meta)))
    return Digest("\n".join(lines), marks)


def _line(text: str) -> str:
    words = " ".join(text[: LINE * 4].split())
    return words if len(words) <= LINE else words[: LINE - 1] + "…"


TOLD: Final[Mapping[Why, str]] = {
    "": "",
    "daily": "A new day, a new conversation; the one before is kept. /undo brings it back.",
    "idle": "After a long pause this is a new conversation; the one before is kept. /undo brings it back.",
}
"""What the person is told, in one line."""


def undoable(at: int | None, now: int) -> bool:
    """Whether what was begun anew `at` can still be undone."""
    return at is not None and 0 <= now - at <= UNDO_MS
