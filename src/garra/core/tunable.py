"""Which settings an agent may propose to change. Whatever decides who may do what is not among them: policy, lists of
people, owners, approvals, credentials, addresses, programs, plugins, and standing orders in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_AGENT = (
    "model", "model.primary", "model.fallbacks", "imageModel", "utilityModel", "models.*.alias", "thinkingDefault",
    "verboseDefault", "reasoningDefault", "heartbeat.every", "heartbeat.model", "heartbeat.activeHours",
    "heartbeat.activeHours.*", "compaction.mode", "compaction.reserveTokens", "compaction.reserveTokensFloor",
    "compaction.keepRecentTokens", "compaction.model", "humanDelay.*",
)  # fmt: skip
_CHANNEL = (
    "enabled", "streaming", "streaming.*", "streaming.*.*", "textChunkLimit", "chunkMode", "blockStreaming",
    "replyToMode", "replyToModeByChatType.*", "mediaMaxMb", "historyLimit", "ackReaction", "markdown.*",
)  # fmt: skip
PATHS: Final = (
    *(f"agents.defaults.{path}" for path in (*_AGENT, "userTimezone", "timeFormat", "contextTokens", "mediaMaxMb")),
    *(f"agents.entries.*.{path}" for path in (*_AGENT, "name", "identity.name", "identity.emoji", "identity.theme")),
    *(f"channels.*.{path}" for path in _CHANNEL),
    *(f"channels.*.accounts.*.{path}" for path in _CHANNEL),
    "messages.queue.*", "messages.queue.byChannel.*", "messages.inbound.*", "messages.inbound.byChannel.*",
    "messages.ackReaction", "messages.ackReactionScope", "messages.removeAckAfterReply", "messages.responsePrefix",
    "session.reset.*", "session.resetByType.*.*", "session.resetByChannel.*.*", "session.idleMinutes",
    "session.typingMode", "logging.level",
)  # fmt: skip
"""A star stands for one key."""


def refused(change: Mapping[str, Any]) -> tuple[str, ...]:
    """The places in a change (an object to be merged; null removes) that an agent may not touch, sorted."""
    return tuple(sorted({".".join(path) for path in _leaves(change) if not _may(path)}))


def _leaves(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*at, str(key)))
    else:
        yield at


def _may(path: tuple[str, ...]) -> bool:
    """Every key by itself, so that a dot in a key leads nowhere."""
    return any(
        len(parts) == len(path) and all(_fits(key, part) for key, part in zip(path, parts, strict=True))
        for parts in map(_split, PATHS)
    )


def _split(path: str) -> list[str]:
    return path.split(".")


def _fits(key: str, part: str) -> bool:
    return bool(key) if part == "*" else key == part
