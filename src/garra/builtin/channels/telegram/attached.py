"""What a message carries besides words: files to fetch, and things that can only be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.sdk.channel import Media, MediaKind

_FILES: tuple[tuple[str, MediaKind, str], ...] = (
    ("voice", "voice", "audio/ogg"),
    ("audio", "audio", "audio/mpeg"),
    ("animation", "video", "video/mp4"),  # before document: Telegram sends an animation as both
    ("video", "video", "video/mp4"),
    ("video_note", "video", "video/mp4"),
    ("document", "file", "application/octet-stream"),
)
ROOM = 20 << 20


def media(message: Mapping[str, Any]) -> tuple[Media, ...]:
    """The files of a message; an image in several sizes is its largest that may be fetched."""
    if photo := message.get("photo"):
        fitting = [size for size in photo if int(size.get("file_size") or 0) <= ROOM] or list(photo)[:1]
        best = max(fitting, key=lambda size: int(size.get("width", 0)) * int(size.get("height", 0)))
        return (_one(best, "image", "image/jpeg"),)
    for key, kind, mime in _FILES:
        if found := message.get(key):
            return (_one(found, kind, mime),)
    sticker = message.get("sticker")
    if sticker and not sticker.get("is_animated") and not sticker.get("is_video"):
        return (_one(sticker, "sticker", "image/webp"),)
    return ()


def _one(found: Mapping[str, Any], kind: MediaKind, mime: str) -> Media:
    size = found.get("file_size")
    told = str(found.get("mime_type") or mime)
    name = str(found.get("file_name") or "")
    seconds = found.get("duration") if kind in ("voice", "audio") else None
    return Media(
        kind,
        str(found["file_id"]),
        name,
        told,
        int(size) if size is not None else None,
        int(seconds) if seconds is not None else None,
    )


def told(message: Mapping[str, Any]) -> str:
    """In words what has none: a place, a contact, a poll, a sticker, a die. Empty when there is no such thing."""
    for key, tell in _TOLD:
        if found := message.get(key):
            return tell(found)
    return ""


def _venue(found: Mapping[str, Any]) -> str:
    return f"[place: {found.get('title', '')}, {found.get('address', '')}, {_point(found.get('location') or {})}]"


def _location(found: Mapping[str, Any]) -> str:
    return f"[location: {_point(found)}]"


def _point(found: Mapping[str, Any]) -> str:
    return f"{found.get('latitude')}, {found.get('longitude')}"


def _contact(found: Mapping[str, Any]) -> str:
    name = " ".join(filter(None, (found.get("first_name"), found.get("last_name"))))
    return f"[contact: {name}, {found.get('phone_number', '')}]"


def _poll(found: Mapping[str, Any]) -> str:
    options = " / ".join(str(option.get("text", "")) for option in found.get("options") or ())
    return f"[poll: {found.get('question', '')}: {options}]"


def _sticker(found: Mapping[str, Any]) -> str:
    return str(found.get("emoji") or "[sticker]")


def _dice(found: Mapping[str, Any]) -> str:
    return f"{found.get('emoji', '')} {found.get('value', '')}".strip()


_TOLD = (
    ("venue", _venue),  # before location: a venue brings both
    ("location", _location),
    ("contact", _contact),
    ("poll", _poll),
    ("sticker", _sticker),
    ("dice", _dice),
)
