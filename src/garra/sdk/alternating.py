"""What protocols share in which two sides take turns: Anthropic's messages, and Bedrock's converse.

All that people and tools said between two answers is one message there, and a thought is paid for by a budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from garra.core.messages import Assistant, Content, Message, Part
from garra.sdk.model import Level
from garra.sdk.written import Messages

REDACTED: Final = "redacted:"
"""Begins the signature of a thought that the provider keeps to itself."""

_BUDGET: Final[dict[str, int]] = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 32_768}
_EFFORT: Final[dict[str, str]] = {"minimal": "low", "xhigh": "max"}
_LEAST: Final = 1_024
"""Tokens of the smallest thought, and of what must be left for the answer."""
_ID: Final = re.compile(r"[^A-Za-z0-9_-]")

Block = dict[str, Any]
Group = dict[str, Any]


def apart(messages: Messages, at: int) -> bool:
    """Whether what stands before `at` is a message of its own: between an answer and what is said to it."""
    return isinstance(messages[at - 1], Assistant) and not isinstance(messages[at], Assistant)


def cut(messages: Messages) -> tuple[Messages, Messages]:
    """What ends in the last answer, and what came after it."""
    for at in range(len(messages), 0, -1):
        if isinstance(messages[at - 1], Assistant):
            return messages[:at], messages[at:]
    return (), messages


def grouped(messages: Iterable[Message], blocks: Callable[[Message], list[Block]]) -> list[Group]:
    """Messages by role, each with its `blocks`; one without any is left out."""
    listed: list[Group] = []
    for message in messages:
        role = "assistant" if isinstance(message, Assistant) else "user"
        if not (said := blocks(message)):
            continue
        if listed and listed[-1]["role"] == role:
            listed[-1]["content"] += said
        else:
            listed.append({"role": role, "content": said})
    return listed


def shown(content: Content | Iterable[Part], part: Callable[[Any], Block | None]) -> list[Block]:
    """The blocks of parts; those that make none are left out."""
    return [block for each in content if (block := part(each)) is not None]


def thought(level: Level, style: str, limit: int) -> dict[str, Any]:
    """The fields that let a model think first, `adaptive` or with a budget below `limit` tokens."""
    if style == "adaptive":
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _EFFORT.get(level, level)}}
    budget = min(_BUDGET[level], limit - _LEAST)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= _LEAST else {}


def call_id(given: str) -> str:
    """An id in the letters that such a provider takes."""
    return _ID.sub("_", given)[:64] or "call"
