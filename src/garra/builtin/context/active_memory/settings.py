"""The settings of active memory (`plugins.entries.active-memory.config`), by the original's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from garra.core.value import frozen

STRONG: Final = 0.5
"""How well something must fit that nobody asked for; scores go from 0 to 1."""
WEAK: Final = 0.2
"""How well it must fit where the past is asked for."""
STYLES: Final[Mapping[str, float]] = {"strict": 0.15, "precision-heavy": 0.15, "recall-heavy": -0.15}
"""By how much more or less than that."""


@frozen
class Settings:
    """Times in milliseconds, sizes in characters. No `agents` means all of them, no `chats` all of the right kind."""

    mode: str = "escalate"
    agents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("direct",)
    chats: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    query: str = "recent"
    shift: float = 0.0
    timeout_ms: float = 15_000
    most: int = 220
    user_turns: int = 2
    user_chars: int = 220
    answer_turns: int = 1
    answer_chars: int = 180
    cache_ms: float = 15_000
    timeouts: int = 3
    cooldown_ms: float = 60_000

    def serves(self, agent: str, kind: str, place: str) -> bool:
        """Whether a conversation is one of those that it is for."""
        if self.mode == "off" or (self.agents and agent.lower() not in self.agents):
            return False
        kinds = ("group", "channel") if kind == "group" else (kind,)
        if place.lower() in self.denied or not set(kinds) & set(self.kinds):
            return False
        return not self.chats or place.lower() in self.chats

    def least(self, *, past: bool) -> float:
        """The score that is needed; `past`: somebody asks for the past."""
        return (WEAK if past or self.mode == "always" else STRONG) + self.shift


def read(given: Mapping[str, Any]) -> Settings:
    """What the file says; the schema of the manifest has checked it."""
    usual = Settings()

    def number(name: str, default: float) -> float:
        return float(given.get(name, default))

    return Settings(
        str(given.get("mode", usual.mode)),
        _names(given.get("agents")),
        _names(given.get("allowedChatTypes")) or usual.kinds,
        _names(given.get("allowedChatIds")),
        _names(given.get("deniedChatIds")),
        str(given.get("queryMode", usual.query)),
        STYLES.get(str(given.get("promptStyle", "")), 0.0),
        number("timeoutMs", usual.timeout_ms),
        int(number("maxSummaryChars", usual.most)),
        int(number("recentUserTurns", usual.user_turns)),
        int(number("recentUserChars", usual.user_chars)),
        int(number("recentAssistantTurns", usual.answer_turns)),
        int(number("recentAssistantChars", usual.answer_chars)),
        number("cacheTtlMs", usual.cache_ms),
        int(number("circuitBreakerMaxTimeouts", usual.timeouts)),
        number("circuitBreakerCooldownMs", usual.cooldown_ms),
    )


def _names(value: Any) -> tuple[str, ...]:
    return tuple(str(each).lower() for each in value or ())
