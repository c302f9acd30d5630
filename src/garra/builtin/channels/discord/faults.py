"""What a refusal of Discord means for a message, and what a close code means for the link. Pure tables."""

from __future__ import annotations

from collections.abc import Mapping

from garra.builtin.channels.discord.api import Refused
from garra.sdk.channel import Fault, LinkLost, LinkRefused, SendFailed

_NUMBERS: Mapping[int, Fault] = {
    10003: "gone",  # unknown channel
    10004: "gone",  # unknown guild
    10008: "gone",  # unknown message
    10013: "gone",  # unknown user
    20016: "passing",  # slow mode
    20028: "passing",  # the channel's write limit
    20029: "passing",  # the server's write limit
    40005: "too_large",
    50001: "gone",  # missing access
    50007: "gone",  # cannot write to this person
    50278: "gone",  # no server in common with this person
}
_TOO_LONG = ("BASE_TYPE_MAX_LENGTH", "BASE_TYPE_BAD_LENGTH")

PORTAL = "in the Developer Portal (https://discord.com/developers/applications), your application, Bot"
_CLOSED: Mapping[int, str] = {
    4004: f"Discord does not take this token (4004). Reset it {PORTAL}, and set channels.discord.token.",
    4010: "Discord refuses the shard (4010); this channel uses none.",
    4011: "The bot is in more servers than one connection may serve (4011). It asks for shards; none are used here.",
    4012: "Discord no longer takes this version of its gateway (4012): update Garra.",
    4013: "Discord does not know what is asked of it (4013, intents): update Garra.",
    4014: "Discord does not allow the Message Content intent to this bot (4014). Switch it on "
    f"{PORTAL}, Privileged Gateway Intents, Message Content Intent; or set "
    "channels.discord.intents.messageContent to false, and the bot reads in servers only what mentions it.",
}
ANEW = frozenset({4007, 4009})
"""Closed so, a session cannot be gone on with."""


def send_failed(refused: Refused) -> SendFailed:
    """What became of the message."""
    return SendFailed(_fault(refused), refused.message, refused.retry_after_s)


def fetch_failed(refused: Refused) -> SendFailed:
    """What became of a file that was asked for: asking again does no harm, so nothing is unsure."""
    fault: Fault = "gone" if refused.status in {403, 404} else _fault(refused)
    return SendFailed("passing" if fault == "unsure" else fault, refused.message, refused.retry_after_s)


def _fault(refused: Refused) -> Fault:
    if (known := _NUMBERS.get(refused.number)) is not None:
        return known
    match refused.status:
        case 0:
            return "passing" if refused.kind in {"connect", "refused"} else "unsure"
        case 401:
            return "auth"
        case 404:
            return "gone"
        case 413:
            return "too_large"
        case 429:
            return "passing"
        case status if status >= 500:
            return "unsure"
        case _:
            return "too_long" if any(word in refused.form for word in _TOO_LONG) else "refused"


def link_lost(refused: Refused) -> LinkLost | LinkRefused:
    """What became of the link, when a call it cannot do without was refused."""
    if refused.status == 401:
        return LinkRefused(
            f"Discord does not take this token (401). Reset it {PORTAL}, and set channels.discord.token."
        )
    if refused.status == 404 and not refused.number:
        return LinkRefused("Discord answers 404: apiRoot is not the address of its REST, such as …/api/v10.")
    wait = refused.retry_after_s
    return LinkLost(refused.message, details={"retryAfterS": wait} if wait else None)


def closed(code: int, words: str) -> LinkLost | LinkRefused:
    """What became of the link, when Discord closed it."""
    if code in _CLOSED:
        return LinkRefused(_CLOSED[code])
    return LinkLost(words)
