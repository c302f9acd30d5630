"""How much a model is asked to think: the levels, and the words that people, clients and settings use for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

Level = Literal["off", "minimal", "low", "medium", "high", "xhigh"]
Setting = Literal["off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max", "ultra"]
"""What a configuration or a session may say. The last three are kept as written and read as a level."""

LEVELS: Final[tuple[Level, ...]] = get_args(Level)
SETTINGS: Final[tuple[Setting, ...]] = get_args(Setting)
_WORDS: Final[Mapping[str, Level]] = {
    **{level: level for level in LEVELS},
    "none": "off",
    "on": "low",
    "adaptive": "medium",
    "highest": "high",
    "max": "xhigh",
    "ultra": "xhigh",
    "x-high": "xhigh",
    "x_high": "xhigh",
    "extra-high": "xhigh",
    "extra_high": "xhigh",
    "extra high": "xhigh",
}


def level(word: str) -> Level | None:
    """The level a word means, whatever its case; None for a word that means none."""
    return _WORDS.get(word.strip().lower())


def levels(*, reasoning: bool) -> tuple[Level, ...]:
    """The levels a model knows; just `off` for one that does not think."""
    return LEVELS if reasoning else ("off",)


def unknown(word: str) -> str:
    """What to say of a word that means no level."""
    return f"unknown thinking level {word[:40]!r}: use one of {', '.join(LEVELS)}"
