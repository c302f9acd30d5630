"""What a message of Discord says: its words for people, and its files."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from garra.sdk.channel import Media, MediaKind

_PERSON = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")
_VOICE = 1 << 13
_FORWARD = 1
_KINDS: tuple[tuple[str, MediaKind], ...] = (("image/", "image"), ("audio/", "audio"), ("video/", "video"))


def words(body: Mapping[str, Any], me: str, roles: Collection[str]) -> str:
    """The text: without the bot's name where it opens the message, people by their names, emojis by theirs; what was
    forwarded says so, and what has no words is told in some.
    """
    text = _unaddressed(str(body.get("content") or ""), me, roles)
    names = {str(user.get("id")): str(user.get("username") or "") for user in body.get("mentions") or ()}
    text = _PERSON.sub(lambda found: f"@{names[found[1]]}" if names.get(found[1]) else found[0], text)
    parts = [_EMOJI.sub(r"\1", text), *_forwarded(body), *_told(body)]
    return "\n".join(part for part in parts if part)


def _unaddressed(text: str, me: str, roles: Collection[str]) -> str:
    """The words without the mention that they begin with, when it is the bot's."""
    head = text.lstrip()
    found = _PERSON.match(head) or _ROLE.match(head)
    if found is None:
        return text
    own = found[1] in roles if found[0].startswith("<@&") else found[1] == me
    return head[found.end() :].lstrip(" ,:\n") if own else text


def _forwarded(body: Mapping[str, Any]) -> list[str]:
    """What somebody else said first: it is not the sender's own word, and never a command of theirs."""
    if (body.get("message_reference") or {}).get("type", 0) != _FORWARD:
        return []
    found = (shot.get("message") or {} for shot in body.get("message_snapshots") or ())
    return [f"[forwarded] {shot.get('content') or ''}".rstrip() for shot in found]


def _told(body: Mapping[str, Any]) -> list[str]:
    """In words what has none: stickers, a poll, the cards of bots."""
    told = [f"[sticker: {one.get('name', '')}]" for one in body.get("sticker_items") or ()]
    if poll := body.get("poll"):
        answers = ((one.get("poll_media") or {}).get("text", "") for one in poll.get("answers") or ())
        told.append(f"[poll: {(poll.get('question') or {}).get('text', '')}: {' / '.join(map(str, answers))}]")
    if not body.get("content") and (body.get("author") or {}).get("bot"):
        told += [
            "\n".join(filter(None, (card.get("title"), card.get("description")))) for card in body.get("embeds") or ()
        ]
    return told


def media(body: Mapping[str, Any]) -> tuple[Media, ...]:
    """The attachments, a forwarded message's too. `ref` is channel, message, attachment and address: the address runs
    out, the others find it anew.
    """
    place = f"{body['channel_id']} {body['id']}"
    voice = bool(int(body.get("flags") or 0) & _VOICE)
    return tuple(_one(found, place, voice=voice) for found in attachments(body))


def attachments(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What is attached to a message, and to what it forwards."""
    shots = (shot.get("message") or {} for shot in body.get("message_snapshots") or ())
    return [*(body.get("attachments") or ()), *(one for shot in shots for one in shot.get("attachments") or ())]


def _one(found: Mapping[str, Any], place: str, *, voice: bool) -> Media:
    mime = str(found.get("content_type") or "application/octet-stream").partition(";")[0]
    kind: MediaKind = next((kind for head, kind in _KINDS if mime.startswith(head)), "file")
    size = found.get("size")
    return Media(
        "voice" if voice and kind == "audio" else kind,
        f"{place} {found['id']} {found['url']}",
        str(found.get("filename") or ""),
        mime,
        int(size) if size is not None else None,
    )
