"""What a refusal of Telegram means for a message, and for the link. Pure tables."""

from __future__ import annotations

from garra.builtin.channels.telegram.api import Refused
from garra.sdk.channel import Fault, LinkLost, LinkRefused, SendFailed

_BAD: tuple[tuple[str, Fault], ...] = (
    ("can't parse entities", "format"),
    ("can't parse message text", "format"),
    ("entities_too_long", "format"),
    ("message is too long", "too_long"),
    ("message_too_long", "too_long"),
    ("caption is too long", "too_long"),
    ("media_caption_too_long", "too_long"),
    ("file is too big", "too_large"),
    ("chat not found", "gone"),
    ("user not found", "gone"),
    ("peer_id_invalid", "gone"),
    ("chat_id_invalid", "gone"),
    ("message thread not found", "gone"),
    ("topic_deleted", "gone"),
    ("message to edit not found", "gone"),
    ("message can't be edited", "refused"),
)
_GONE = ("blocked", "kicked", "deactivated", "not a member", "can't initiate", "user is deleted", "chat was deleted")
UNCHANGED = "message is not modified"
NO_DELETE = ("message to delete not found", "message can't be deleted")
NOT_AN_IMAGE = ("photo_invalid_dimensions", "image_process_failed", "photo_save_file_invalid", "photo_ext_invalid")
"""Telegram takes such an image as a plain file only."""


def send_failed(refused: Refused) -> SendFailed:
    """What became of the message."""
    return SendFailed(_fault(refused), refused.message, refused.retry_after_s)


def fetch_failed(refused: Refused) -> SendFailed:
    """What became of a file that was asked for: asking again does no harm, so nothing is unsure."""
    fault: Fault = "gone" if refused.status == 404 else _fault(refused)
    return SendFailed("passing" if fault == "unsure" else fault, refused.message, refused.retry_after_s)


def _fault(refused: Refused) -> Fault:
    said = refused.said.lower()
    match refused.status:
        case 0:
            return "unsure" if refused.kind in {"timeout", "cut", "limit"} else "passing"
        case 401 | 404:
            return "auth"
        case 403:
            return "gone" if any(words in said for words in _GONE) else "refused"
        case 413:
            return "too_large"
        case 420 | 429:
            return "passing"
        case status if status >= 500:
            return "passing"
        case _:
            return next((fault for words, fault in _BAD if words in said), "refused")


def link_lost(refused: Refused) -> LinkLost | LinkRefused:
    """What became of the link, when it was `getMe` that was refused."""
    if refused.status == 401:
        return LinkRefused("Telegram does not know this bot token (401). Ask BotFather for a new one: /token.")
    if refused.status == 404:
        return LinkRefused(
            "Telegram answers 404: the bot token is misspelt, or apiRoot is not the address of a Bot API server."
        )
    return lost(refused)


def lost(refused: Refused) -> LinkLost:
    """A passing fault of the link; a server that says when to come again is heard."""
    if refused.status == 409 and "webhook" not in refused.said.lower():
        return LinkLost(
            "Telegram says another program reads this bot's messages (409). Stop it, or give this bot a new token."
        )
    wait = refused.retry_after_s
    return LinkLost(refused.message, details={"retryAfterS": wait} if wait else None)
