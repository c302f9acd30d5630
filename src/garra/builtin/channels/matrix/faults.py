"""What a refusal of the server means for a message, and for the link. Pure tables."""

from __future__ import annotations

from collections.abc import Mapping

from garra.builtin.channels.matrix.api import Refused
from garra.sdk.channel import Fault, LinkLost, LinkRefused, SendFailed

TOKEN = frozenset({"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED", "M_USER_LOCKED"})
_BY_CODE: Mapping[str, Fault] = {
    "M_UNKNOWN_TOKEN": "auth",
    "M_MISSING_TOKEN": "auth",
    "M_USER_DEACTIVATED": "auth",
    "M_LIMIT_EXCEEDED": "passing",
    "M_TOO_LARGE": "too_long",
    "M_NOT_FOUND": "gone",
    "M_UNKNOWN_ROOM": "gone",
}
_OUTSIDE = (
    "not in room",
    "not a member",
    "not joined",
    "unknown room",
    "isn't in room",
    "not invited",
    "no create event",
)


def send_failed(refused: Refused) -> SendFailed:
    """What became of the message. The server knows a repeated one by its transaction id."""
    return SendFailed(_fault(refused), refused.message, refused.retry_after_s)


def upload_failed(refused: Refused) -> SendFailed:
    """What became of a file on its way: no message was sent yet, so trying again does no harm."""
    fault = "too_large" if refused.status == 413 else _fault(refused)
    return SendFailed("passing" if fault == "unsure" else fault, refused.message, refused.retry_after_s)


def fetch_failed(refused: Refused) -> SendFailed:
    """What became of a file that was asked for."""
    return upload_failed(refused)


def _fault(refused: Refused) -> Fault:
    if refused.status == 0:
        return "unsure" if refused.kind in {"timeout", "cut", "limit"} else "passing"
    if (known := _BY_CODE.get(refused.errcode)) is not None:
        return known
    if refused.status == 413:
        return "too_long"
    if refused.status == 429:
        return "passing"
    if refused.status == 401:
        return "auth"
    if refused.status == 403:
        said = refused.said.lower()
        return "gone" if any(words in said for words in _OUTSIDE) else "refused"
    if refused.status >= 500:  # a server in front may have given up while the one behind it went on
        return "unsure"
    return "refused"


def link_fault(refused: Refused) -> LinkLost | LinkRefused:
    """What became of the link, when the account itself was refused."""
    if refused.errcode in TOKEN or refused.status == 401:
        return LinkRefused(
            f"the homeserver does not take this login any more ({refused.errcode or refused.status}). "
            "Set accessToken to a new one, or userId and password."
        )
    if refused.errcode in {"M_FORBIDDEN", "M_INVALID_USERNAME", "M_UNKNOWN_DEVICE"} or refused.status == 403:
        return LinkRefused(f"the homeserver refuses this account: {refused.said}. Look at userId and password.")
    if refused.status == 404:
        return LinkRefused("this address answers, but is no Matrix homeserver (404). Look at homeserver.")
    return lost(refused)


def lost(refused: Refused) -> LinkLost:
    """A passing fault of the link; a server that says when to come again is heard."""
    wait = refused.retry_after_s
    return LinkLost(refused.message, details={"retryAfterS": wait} if wait else None)
