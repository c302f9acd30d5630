"""What a message of Slack says: its words for people, and its files; and our words as Slack must read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from garra.sdk.channel import Media, MediaKind

_MARK = re.compile(r"<([^<>]*)>")
_KINDS: tuple[tuple[str, MediaKind], ...] = (("image/", "image"), ("audio/", "audio"), ("video/", "video"))
_CALL = re.compile(r"<(?=[!@#])")


def words(event: Mapping[str, Any], me: str) -> str:
    """The text: without the bot's name where it opens the message, links and names written out, entities undone."""
    text = str(event.get("text") or "")
    head = text.lstrip()
    own = re.match(rf"<@{re.escape(me)}(\|[^>]*)?>", head) if me else None
    if own is not None:
        text = head[own.end() :].lstrip(" ,:\n")
    parts = [plain(_MARK.sub(lambda found: _written(found[1]), text)), *_told(event)]
    return "\n".join(part for part in parts if part)


def mentions(event: Mapping[str, Any], me: str) -> bool:
    """Whether the bot is named. @here and @channel name nobody."""
    return bool(me) and re.search(rf"<@{re.escape(me)}(\|[^>]*)?>", str(event.get("text") or "")) is not None


def plain(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def escaped(text: str) -> str:
    """Words in which Slack must see no sign of its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def silenced(text: str) -> str:
    """Formatted words that call nobody: a link begins with an address, never with the sign of a person, a channel or
    everybody.
    """
    return _CALL.sub("&lt;", text)


def _written(inside: str) -> str:
    """What stands between angles: a person, a channel, a call, or a link."""
    target, mark, label = inside.partition("|")
    if target.startswith("@"):
        return f"@{label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:].partition('^')[0]}"
    bare = target.removeprefix("mailto:").removeprefix("tel:")
    return f"{label} ({target})" if mark and label not in (target, bare) else bare


def _told(event: Mapping[str, Any]) -> list[str]:
    """In words what other apps write as cards."""
    if event.get("text"):
        return []
    return [str(card.get("fallback") or card.get("text") or "") for card in event.get("attachments") or ()]


def media(event: Mapping[str, Any]) -> tuple[Media, ...]:
    """The files. `ref` is the file's id and its address, which may be missing."""
    return tuple(
        _one(found) for found in event.get("files") or () if found.get("mode") not in {"tombstone", "hidden_by_limit"}
    )


def _one(found: Mapping[str, Any]) -> Media:
    mime = str(found.get("mimetype") or "application/octet-stream")
    kind: MediaKind = next((kind for head, kind in _KINDS if mime.startswith(head)), "file")
    size = found.get("size")
    return Media(
        "voice" if found.get("subtype") == "slack_audio" else kind,
        f"{found['id']} {found.get('url_private_download') or found.get('url_private') or ''}",
        str(found.get("name") or found.get("title") or ""),
        mime,
        int(size) if size is not None else None,
    )
