"""Messages of ours as calls of the Bot API. Pure: files are named, not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import Any

from garra.builtin.channels.telegram.codec import GENERAL
from garra.builtin.channels.telegram.text import units
from garra.core.value import frozen
from garra.sdk.channel import Address, Button, File, MediaKind, Outbound, SendFailed

HTML = "telegram-html"
CAPTION = 1024
ALBUM = 10
_METHODS: Mapping[MediaKind, tuple[str, str]] = {
    "image": ("sendPhoto", "photo"),
    "audio": ("sendAudio", "audio"),
    "voice": ("sendVoice", "voice"),
    "video": ("sendVideo", "video"),
    "sticker": ("sendSticker", "sticker"),
    "file": ("sendDocument", "document"),
}


@frozen
class Call:
    """One call: `files` by the field their bytes go into."""

    method: str
    params: Mapping[str, Any]
    files: Mapping[str, File] = field(default_factory=dict)


@frozen
class Style:
    """What an account's settings say about every message."""

    link_preview: bool = True


def calls(message: Outbound, style: Style) -> list[Call]:
    """The calls that send a message, in order: files first, the words as their caption where they fit.

    Raises SendFailed for a button Telegram cannot carry, or for nothing to send.
    """
    if not message.files:
        if not message.text.strip():
            raise SendFailed("refused", "there is nothing to send")
        return [Call("sendMessage", _spoken(message, style) | _place(message) | _keyboard(message.buttons))]
    groups = list(_groups(message.files))
    captioned = units(message.text) <= CAPTION and groups[0][0].kind != "sticker"
    listed = [_sent(group, message, caption=captioned and at == 0) for at, group in enumerate(groups)]
    alone = captioned and len(listed) == 1 and listed[0].method != "sendMediaGroup"
    if message.text.strip() and not captioned:
        listed.append(Call("sendMessage", _spoken(message, style) | _place(message) | _keyboard(message.buttons)))
    elif message.buttons and alone:
        listed = [Call(one.method, {**one.params, **_keyboard(message.buttons)}, one.files) for one in listed]
    elif message.buttons:
        raise SendFailed("refused", "Telegram shows no buttons under several files; send them under words of their own")
    return listed


def change(message_id: str, message: Outbound, style: Style) -> Call:
    """The call that changes the words of a message."""
    where = {"chat_id": chat(message.address), "message_id": int(message_id)}
    return Call("editMessageText", where | _spoken(message, style) | _keyboard(message.buttons))


def recaption(call: Call) -> Call:
    """The same for a message that is a file with words below it."""
    params = {("caption" if key == "text" else key): value for key, value in call.params.items()}
    params.pop("link_preview_options", None)
    return Call("editMessageCaption", params)


def as_document(call: Call) -> Call:
    """The same image as a plain file."""
    return Call("sendDocument", call.params, {"document": call.files["photo"]})


def typing(address: Address) -> Call:
    where: dict[str, Any] = {"chat_id": chat(address), "action": "typing"}
    return Call("sendChatAction", where | ({"message_thread_id": int(address.thread)} if address.thread else {}))


def reaction(address: Address, message_id: str, emoji: str) -> Call:
    shown = [{"type": "emoji", "emoji": emoji}] if emoji else []
    where = {"chat_id": chat(address), "message_id": int(message_id)}
    return Call("setMessageReaction", where | {"reaction": shown})


def chat(address: Address) -> int | str:
    """A chat's id as Telegram takes it: a number, or the @name of a public one."""
    return int(address.chat) if address.chat.lstrip("-").isdecimal() else address.chat


def moved(call: Call, to: int) -> Call:
    """The same to the chat that took the old one's place."""
    return Call(call.method, {**call.params, "chat_id": to}, call.files)


def _spoken(message: Outbound, style: Style) -> dict[str, Any]:
    preview = {} if style.link_preview else {"link_preview_options": {"is_disabled": True}}
    return {"text": message.text} | _mode(message) | preview


def _mode(message: Outbound) -> dict[str, Any]:
    return {"parse_mode": "HTML"} if message.format == HTML else {}


def _place(message: Outbound) -> dict[str, Any]:
    """Chat, topic, the message answered. The general topic must not be named: Telegram then finds no thread."""
    where: dict[str, Any] = {"chat_id": chat(message.address)}
    if message.address.thread and message.address.thread != GENERAL:
        where["message_thread_id"] = int(message.address.thread)
    if message.reply_to.isdecimal():
        where["reply_parameters"] = {"message_id": int(message.reply_to), "allow_sending_without_reply": True}
    return where | ({"disable_notification": True} if message.silent else {})


def _keyboard(rows: Sequence[Sequence[Button]]) -> dict[str, Any]:
    if not rows:
        return {}
    long = next((button for row in rows for button in row if len(button.data.encode()) > 64), None)
    if long is not None:
        raise SendFailed("refused", f"the button {long.label!r} carries more than 64 bytes")
    keys = [[{"text": button.label, "callback_data": button.data} for button in row] for row in rows]
    return {"reply_markup": {"inline_keyboard": keys}}


def _groups(files: Sequence[File]) -> Iterator[list[File]]:
    """Pictures and films in a row go as one album, at most ten; all else alone."""
    for album, run in groupby(files, lambda file: file.kind in {"image", "video"}):
        listed = list(run)
        size = ALBUM if album else 1
        for at in range(0, len(listed), size):
            yield listed[at : at + size]


def _sent(group: Sequence[File], message: Outbound, *, caption: bool) -> Call:
    said: dict[str, Any] = {"caption": message.text} | _mode(message) if caption and message.text else {}
    if len(group) > 1:
        shown = [
            {"type": "photo" if file.kind == "image" else "video", "media": f"attach://file{at}"}
            | (said if at == 0 else {})
            for at, file in enumerate(group)
        ]
        files = {f"file{at}": file for at, file in enumerate(group)}
        return Call("sendMediaGroup", {**_place(message), "media": shown}, files)
    method, key = _METHODS[group[0].kind]
    return Call(method, {**_place(message), **said}, {key: group[0]})
