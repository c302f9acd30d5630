"""How a chat's messages wait while its agent works: what the session says, else its channel, else all, else steer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from garra.config.sections import Config
from garra.core import lanes
from garra.core.errors import UserError
from garra.core.patterns import later
from garra.domains.sessions.session import Session

MODES: Final[Mapping[str, lanes.Mode]] = {
    "steer": "steer",
    "steer-backlog": "steer",
    "followup": "followup",
    "queue": "followup",
    "collect": "collect",
    "interrupt": "interrupt",
    "drop": "drop",
}
OVERFLOWS: Final[Mapping[str, lanes.Overflow]] = {"summarize": "summarize", "old": "old", "new": "new"}

QUIET_MS: Final = 300
"""How long a person may pause between messages that become one turn, where nothing is set."""
LONG: Final = 3_500
"""A message of so many characters is perhaps the piece of a longer one that its app has cut."""
LONG_MS: Final = 1_500

_UNITS: Final = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN = later(r"(\d{1,9}(?:\.\d{1,3})?)\s*(ms|s|m|h|d)?\Z", re.IGNORECASE)


def settings(config: Config, channel: str, session: Session | None) -> lanes.Settings:
    """How messages wait in one session."""
    queue = config.messages.queue
    own: Mapping[str, Any] = session.extra if session is not None else {}
    extra = queue.model_extra or {}
    by_channel = extra.get("debounceMsByChannel")
    quiet = by_channel.get(channel) if isinstance(by_channel, Mapping) else None
    mode = MODES.get(str(own.get("queueMode"))) or MODES.get(str(queue.by_channel.get(channel) or queue.mode))
    return lanes.Settings(
        mode or "steer",
        _number(own.get("queueDebounceMs"), _number(quiet, queue.debounce_ms)),
        max(1, _number(own.get("queueCap"), queue.cap)),
        OVERFLOWS.get(str(own.get("queueDrop")), queue.drop),
    )


def quiet_s(config: Config, channel: str, length: int) -> float:
    """How long to wait for more of a burst, in seconds: `messages.inbound`; a cut piece is waited for in any case."""
    inbound = config.messages.inbound
    by_channel = inbound.get("byChannel")
    own = by_channel.get(channel) if isinstance(by_channel, Mapping) else None
    quiet = _number(own, _number(inbound.get("debounceMs"), QUIET_MS))
    return max(quiet, LONG_MS if length >= LONG else 0) / 1000


def options(words: list[str]) -> dict[str, Any]:
    """What `/queue` sets: a mode, `debounce:2s`, `cap:25`, `drop:old`. Raises UserError for what it does not know."""
    changes: dict[str, Any] = {}
    for word in words:
        name, colon, value = word.lower().partition(":")
        if not colon and name in ("default", "reset"):
            changes |= dict.fromkeys(("queueMode", "queueDebounceMs", "queueCap", "queueDrop"))
        elif not colon and name in MODES:
            changes["queueMode"] = name
        elif name == "debounce" and (found := _SPAN.match(value)):
            changes["queueDebounceMs"] = round(float(found[1]) * _UNITS[(found[2] or "").lower()])
        elif name == "cap" and value.isascii() and value.isdigit() and 0 < int(value) <= 1000:
            changes["queueCap"] = int(value)
        elif name == "drop" and value in OVERFLOWS:
            changes["queueDrop"] = value
        else:
            raise UserError(
                f"/queue does not know {word[:40]!r}. It takes steer, followup, collect, interrupt, drop or default, "
                "and debounce:500ms, cap:20, drop:summarize|old|new."
            )
    return changes


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default
