"""Who answers instead of the model that is meant: a person is told once when that changes, not with every turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from garra.core.failover import Attempt
from garra.core.value import frozen

SELECTED: Final = "fallbackNoticeSelectedModel"
ACTIVE: Final = "fallbackNoticeActiveModel"
REASON: Final = "fallbackNoticeReason"
"""Under which names a session's entry keeps what was told."""

WHY: Final[Mapping[str, str]] = {
    "rate_limit": "too many requests",
    "overloaded": "the provider is overloaded",
    "timeout": "it did not answer in time",
    "billing": "its account has no credit left",
    "auth": "its key was refused",
    "missing_key": "there is no key for it",
    "model_not_found": "there is no such model",
    "network": "it could not be reached",
    "cut_stream": "the connection broke",
    "server_error": "the provider has a fault",
    "empty": "it gave no answer",
    "bad_request": "it refused the request",
}


RESTS: Final = "it rests after a fault"


@frozen
class Notice:
    """What is told, and what the session's entry keeps of it."""

    text: str
    changes: Mapping[str, Any]


def notice(extra: Mapping[str, Any], selected: str, active: str, attempts: list[Attempt]) -> Notice | None:
    """After an answer of `active` where `selected` was meant; None where nothing is new."""
    told = (extra.get(SELECTED), extra.get(ACTIVE))
    if active == selected:
        if not told[1]:
            return None
        gone = dict.fromkeys((SELECTED, ACTIVE, REASON), "")
        text = f"↪️ Model fallback ended: {selected} answers again (was {told[1]})"
        return Notice(text if told[0] == selected else "", gone)
    if told == (selected, active):
        return None
    reason = _reason(selected, attempts)
    text = f"↪️ Model fallback: {active} answers (selected {selected}; {WHY.get(reason, reason)})"
    return Notice(text, {SELECTED: selected, ACTIVE: active, REASON: reason})


def told(extra: Mapping[str, Any], selected: str) -> str:
    """Who answers now instead of `selected`, in brackets; empty where it answers itself."""
    if extra.get(SELECTED) != selected or not extra.get(ACTIVE):
        return ""
    reason = str(extra.get(REASON))
    return f" (now {extra[ACTIVE]} answers: {WHY.get(reason, reason)})"


def _reason(selected: str, attempts: list[Attempt]) -> str:
    """Why the one that was meant did not answer; where it was not asked, it rests."""
    failed = [each.result for each in attempts if f"{each.provider}/{each.model}" == selected]
    return failed[-1] if failed else RESTS
