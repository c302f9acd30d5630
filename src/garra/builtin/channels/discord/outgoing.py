"""Messages of ours as calls of Discord's REST. Pure: files are named, not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from garra.core.value import frozen
from garra.sdk.channel import Button, File, Outbound, SendFailed

FORMAT = "discord-md"
FILES = 10
_IN_ROW, _ROWS, _LABEL, _DATA = 5, 5, 80, 100
_NO_PREVIEWS, _SILENT = 1 << 2, 1 << 12
SILENCE = {"parse": [], "replied_user": False}
"""Nobody is called by what a model writes: not @everyone, no role, no person, not who is answered."""


@frozen
class Style:
    """What an account's settings say about every message."""

    previews: bool = False
    buttons: bool = True


@frozen
class Post:
    """One message of Discord's: `body` for the call, and the files that go with it."""

    body: dict[str, Any]
    files: tuple[File, ...] = ()

    @property
    def nonce(self) -> str:
        return str(self.body["nonce"])

    def alone(self) -> Post:
        """The same, answering nothing."""
        return replace(self, body={key: value for key, value in self.body.items() if key != "message_reference"})


def posts(message: Outbound, style: Style) -> list[Post]:
    """What sends a message: files ten at a time, words and buttons with the first.

    Raises SendFailed for buttons Discord cannot carry, or for nothing to send.
    """
    if not message.files and not message.text.strip():
        raise SendFailed("refused", "there is nothing to send")
    groups = [message.files[at : at + FILES] for at in range(0, len(message.files), FILES)] or [()]
    return [_post(message, style, group, at) for at, group in enumerate(groups)]


def _post(message: Outbound, style: Style, files: Sequence[File], at: int) -> Post:
    flags = (0 if style.previews else _NO_PREVIEWS) | (_SILENT if message.silent else 0)
    body: dict[str, Any] = {
        "allowed_mentions": SILENCE,
        "nonce": nonce(message.key, at),
        "enforce_nonce": True,
        **({"flags": flags} if flags else {}),
    }
    if at == 0:
        body["content"] = message.text
        body |= {"components": rows(message.buttons)} if message.buttons and style.buttons else {}
        if message.reply_to.isdecimal():
            body["message_reference"] = {"message_id": message.reply_to, "fail_if_not_exists": False}
    if files:
        body["attachments"] = [{"id": number, "filename": file.name} for number, file in enumerate(files)]
    return Post(body, tuple(files))


def change(message: Outbound, style: Style) -> dict[str, Any]:
    """What changes the words of a message."""
    shown = rows(message.buttons) if style.buttons else []
    flags = {} if style.previews else {"flags": _NO_PREVIEWS}
    return {"content": message.text, "components": shown, "allowed_mentions": SILENCE} | flags


def nonce(key: str, at: int) -> str:
    """The name Discord knows a repeated message by: the same for each try, at most 25 characters."""
    return sha256(f"{key}\0{at}".encode()).hexdigest()[:24]


def rows(buttons: Sequence[Sequence[Button]]) -> list[dict[str, Any]]:
    """Rows of at most five buttons, at most five rows. Raises SendFailed for more, or for what fits no button."""
    cut = [row[at : at + _IN_ROW] for row in buttons for at in range(0, len(row), _IN_ROW)]
    if len(cut) > _ROWS:
        raise SendFailed("refused", "Discord shows at most five rows of five buttons")
    return [{"type": 1, "components": [_button(button) for button in row]} for row in cut]


def _button(button: Button) -> dict[str, Any]:
    if not button.data or len(button.data) > _DATA:
        raise SendFailed("refused", f"the button {button.label[:_LABEL]!r} carries nothing, or over {_DATA} characters")
    return {"type": 2, "style": 2, "label": button.label[:_LABEL] or "…", "custom_id": button.data}


@dataclass(slots=True)
class Signs:
    """Which reaction of ours stands where, since Discord takes one away only by its name."""

    shown: dict[tuple[str, str], str]

    def turn(self, place: tuple[str, str], emoji: str) -> str:
        """The emoji to take away now that `emoji` is to stand there; empty when there is none."""
        before = self.shown.pop(place, "")
        if emoji:
            self.shown[place] = emoji
            while len(self.shown) > 1000:
                self.shown.pop(next(iter(self.shown)))
        return "" if before == emoji else before
