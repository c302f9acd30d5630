"""What an answer that is no success means for the message. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from garra.core.errors import Unavailable
from garra.sdk.channel import Fault, SendFailed

_MEANT: Mapping[int, tuple[Fault, str]] = {
    401: ("auth", "it does not know our signature (401): is the secret the same on both sides?"),
    403: ("refused", "it refuses the message (403)"),
    404: ("refused", "nothing takes messages at this address (404)"),
    408: ("passing", "it took too long to be told (408)"),
    410: ("gone", "it wants no more messages (410)"),
    425: ("passing", "it is too early for it (425)"),
    429: ("passing", "it asks for a pause (429)"),
    503: ("passing", "it is out of service (503)"),
}
PRIVATE = "channels.webhook.allowPrivateNetwork=true lets it lie in your own network"
_MOST_S = 86_400.0


def failed(status: int, headers: Mapping[str, str], now_s: int, *, files: bool) -> SendFailed:
    """What became of the message. A server's own fault leaves it open whether the message was taken."""
    if status == 413:
        return SendFailed("too_large" if files else "too_long", "it is too large for the receiver (413)")
    usual: tuple[Fault, str] = ("unsure" if status >= 500 else "refused", f"the receiver answered {status}")
    fault, words = _MEANT.get(status, usual)
    wait = pause(headers.get("retry-after", ""), now_s) if fault in {"passing", "unsure"} else None
    return SendFailed(fault, words, wait)


def lost(fault: Unavailable) -> SendFailed:
    """What became of it when no answer came."""
    told = fault.details or {}
    kinds: Mapping[str, Fault] = {"connect": "passing", "refused": "refused"}
    mend = f"; {PRIVATE}" if told.get("private") else ""
    return SendFailed(kinds.get(str(told.get("kind")), "unsure"), f"{fault.message}{mend}")


def pause(text: str, now_s: int) -> float | None:
    """Seconds that a Retry-After asks for, as a number or a date; at most a day."""
    if text.isascii() and text.isdigit():
        return min(float(text), _MOST_S)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    seconds = (until if until.tzinfo else until.replace(tzinfo=UTC)) - datetime.fromtimestamp(now_s, UTC)
    return min(max(0.0, seconds.total_seconds()), _MOST_S)
