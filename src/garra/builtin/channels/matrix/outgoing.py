"""Messages of ours as Matrix's events. Pure: files are uploaded elsewhere and handed in."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from garra.builtin.channels.matrix.text import plain
from garra.core.value import frozen
from garra.sdk.channel import Address, File, MediaKind, Outbound, SendFailed

HTML = "matrix-html"
_TYPES: Mapping[MediaKind, str] = {
    "image": "m.image",
    "audio": "m.audio",
    "voice": "m.audio",
    "video": "m.video",
    "sticker": "m.image",
    "file": "m.file",
}


@frozen
class Stored:
    """A file on the server: its address, or what an encrypted one is read by."""

    url: str = ""
    locked: Mapping[str, Any] | None = None


def transaction(message: Outbound, number: int | str) -> str:
    """The same for each try of one event of a message: by it the server knows a repeated one."""
    return sha256(f"{message.key}\0{message.address.chat}\0{number}".encode("utf-8", "surrogatepass")).hexdigest()[:40]


def spoken(message: Outbound) -> dict[str, Any]:
    """The event of its words. Raises SendFailed when there are none."""
    shown = " ".join(f"[{button.label}]" for row in message.buttons for button in row)
    if not message.text.strip() and not shown:
        raise SendFailed("refused", "there is nothing to send")
    return _said(message, shown) | _relation(message.address, message.reply_to)


def changed(message_id: str, message: Outbound) -> dict[str, Any]:
    """The event that puts other words in place of a message's."""
    new = _said(message, "")
    star: dict[str, Any] = {key: f"* {new[key]}" for key in ("body", "formatted_body") if key in new}
    return {**new, **star, "m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": message_id}}


def _said(message: Outbound, shown: str) -> dict[str, Any]:
    """A mention of nobody: what an answer quotes rings at no one's."""
    base: dict[str, Any] = {"msgtype": "m.notice" if message.silent else "m.text", "m.mentions": {}}
    if message.format != HTML:
        return {**base, "body": "\n".join(filter(None, (message.text, shown)))}
    body = "\n".join(filter(None, (plain(message.text), shown)))
    below = f"<br>{shown.replace('&', '&amp;').replace('<', '&lt;')}" if shown else ""
    return {**base, "body": body, "format": "org.matrix.custom.html", "formatted_body": message.text + below}


def attached(message: Outbound, file: File, stored: Stored) -> dict[str, Any]:
    """The event of one file."""
    content: dict[str, Any] = {
        "msgtype": _TYPES[file.kind],
        "body": file.name,
        "filename": file.name,
        "info": {"mimetype": file.mime or "application/octet-stream", "size": file.size},
        "m.mentions": {},
    }
    content |= {"url": stored.url} if stored.locked is None else {"file": dict(stored.locked)}
    if file.kind == "voice":
        content |= {"org.matrix.msc3245.voice": {}, "org.matrix.msc1767.audio": {}}
    return content | _relation(message.address, message.reply_to)


def _relation(address: Address, reply_to: str) -> dict[str, Any]:
    """The thread, and what is answered; in a thread older clients see an answer to its first message."""
    answered = {"m.in_reply_to": {"event_id": reply_to or address.thread}}
    if address.thread:
        thread = {"rel_type": "m.thread", "event_id": address.thread, "is_falling_back": not reply_to}
        return {"m.relates_to": {**thread, **answered}}
    return {"m.relates_to": answered} if reply_to else {}


def reaction(message_id: str, emoji: str) -> dict[str, Any]:
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": message_id, "key": emoji}}


def again(text: str) -> str:
    """A transaction id for what may be asked twice without harm."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
