"""What a call says, and what we say in one. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from garra.core.value import frozen
from garra.sdk.channel import Address, ChatKind, Ignored, Inbound, Media, MediaKind, Outbound, Sender
from garra.sdk.encoding import encoded

CHANNEL: Final = "webhook"
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Word = Annotated[str, msgspec.Meta(max_length=256)]
Url = Annotated[str, msgspec.Meta(min_length=8, max_length=4_096, pattern="^https?://")]


class Misread(Exception):
    """The body is no message; the words say why, for a caller who has shown the secret."""


class Who(msgspec.Struct, frozen=True):
    id: Id
    name: Word = ""
    handle: Word = ""
    bot: bool = False


class Attached(msgspec.Struct, frozen=True):
    url: Url
    kind: MediaKind = "file"
    name: Word = ""
    mime: Word = ""
    size: Annotated[int, msgspec.Meta(ge=0)] | None = None


class Said(msgspec.Struct, frozen=True, rename="camel"):
    """One message, as the other side writes it."""

    chat: Id
    sender: Who
    text: str = ""
    id: Word = ""
    kind: ChatKind = "direct"
    thread: Word = ""
    mentioned: bool = False
    reply_to: Word = ""
    reply_text: str = ""
    button: Annotated[str, msgspec.Meta(max_length=64)] = ""
    media: Annotated[list[Attached], msgspec.Meta(max_length=32)] = []
    type: Literal["message"] = "message"


_SAID: Final = msgspec.json.Decoder(Said)


@frozen
class Call:
    """What a verified call carries besides its body. `timestamp` in seconds since 1970."""

    id: str
    timestamp: int


def read(account: str, call: Call, body: bytes) -> Inbound | Ignored:
    """The message in a verified call. One without words, button or file is Ignored. Raises Misread."""
    try:
        said = _SAID.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Misread(str(wrong)) from None
    address = Address(CHANNEL, account, said.chat, said.kind, thread=said.thread)
    known = said.id or call.id
    if not (said.text.strip() or said.button or said.media):
        return Ignored(known, address, "empty")
    return Inbound(
        known,
        "button" if said.button else "message",
        address,
        Sender(said.sender.id, said.sender.name, said.sender.handle, said.sender.bot),
        text=said.text,
        timestamp=call.timestamp * 1000,
        mentioned=said.mentioned,
        data=said.button,
        reply_to=said.reply_to,
        reply_text=said.reply_text,
        media=tuple(Media(one.kind, one.url, one.name, one.mime, one.size) for one in said.media),
    )


def written(message: Outbound, files: Mapping[str, bytes]) -> bytes:
    """The body of a call of ours; `files` are the bytes by path. It names no sender, so it can never be read as one of
    theirs."""
    address = message.address
    body: dict[str, Any] = {
        "type": "message",
        "id": message.key,
        "chat": address.chat,
        "kind": address.kind,
        "text": message.text,
        "format": message.format,
    }
    if address.thread:
        body["thread"] = address.thread
    if message.reply_to:
        body["replyTo"] = message.reply_to
    if message.buttons:
        body["buttons"] = [[{"label": one.label, "data": one.data} for one in row] for row in message.buttons]
    if message.files:
        body["files"] = [
            {
                "kind": file.kind,
                "name": file.name,
                "mime": file.mime,
                "size": len(files[file.path]),
                "data": base64.b64encode(files[file.path]).decode(),
            }
            for file in message.files
        ]
    if message.silent:
        body["silent"] = True
    return encoded(body)
