"""Where the reading stands, on disk: the session and its last stored event, and the last message of each known chat.

The session lets Discord repeat what was missed. Where it refuses that, the chats say from where to ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any, NamedTuple

import msgspec

from garra.core.value import frozen
from garra.sdk.encoding import encoded

CHATS = 200
SENT = 32
_EPOCH_MS = 1_420_070_400_000


class Last(NamedTuple):
    """The last message stored of a chat, and the server it is in."""

    message: str
    guild: str = ""


@frozen
class Position:
    """`bot`, `name`, `handle`: who we are. `intents` are those of the session. `newest`: the newest message stored.
    `since`: what it was when this session began after an older one; `due` are the servers not looked through since.
    `sent` are the last messages of ours that were seen to arrive, by the names they were sent under.
    """

    bot: str = ""
    name: str = ""
    handle: str = ""
    session: str = ""
    url: str = ""
    seq: int = 0
    intents: int = 0
    newest: str = ""
    since: str = ""
    due: tuple[str, ...] = ()
    chats: Mapping[str, Last] = field(default_factory=dict)
    sent: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        return encoded({each.name: getattr(self, each.name) for each in fields(self)}).decode()

    def resumes(self, intents: int) -> bool:
        """Whether its session can be gone on with: one keeps the intents it began with."""
        return bool(self.session and self.url and self.bot) and self.intents == intents

    def ended(self) -> Position:
        """The same without its session."""
        return replace(self, session="", url="", seq=0)

    def heard(self, chat: str, last: Last) -> Position:
        """A message is stored; the chats longest silent are forgotten."""
        known = self.chats.get(chat)
        kept = {other: its for other, its in self.chats.items() if other != chat}
        kept[chat] = last if known is None or later(last.message, known.message) else known
        while len(kept) > CHATS:
            kept.pop(next(iter(kept)))
        newest = last.message if later(last.message, self.newest) else self.newest
        return replace(self, chats=kept, newest=newest)

    def arrived(self, nonce: str, message: str) -> Position:
        """A message of ours came back to us."""
        kept = dict([*self.sent.items(), (nonce, message)][-SENT:])
        return replace(self, sent=kept)

    def begun(self, ready: Mapping[str, Any], intents: int) -> Position:
        """A new session, as READY tells it. Raises KeyError and TypeError for one that tells too little."""
        user = ready["user"]
        same = str(user["id"]) == self.bot
        return Position(
            str(user["id"]),
            str(user.get("global_name") or user["username"]),
            str(user["username"]),
            str(ready["session_id"]),
            str(ready["resume_gateway_url"]),
            0,
            intents,
            self.newest if same else "",
            self.newest if same else "",
            tuple(str(guild["id"]) for guild in ready.get("guilds") or ()),
            self.chats if same else {},
            self.sent if same else {},
        )


def position(text: str | None) -> Position:
    """The stored position; the beginning where there is none, or none that can be read."""
    try:
        found = msgspec.json.decode(text or "{}")
        chats = {chat: Last(str(last[0]), str(last[1])) for chat, last in found.pop("chats", {}).items()}
        due = tuple(str(guild) for guild in found.pop("due", ()))
        return Position(**found, chats=chats, due=due)
    except (msgspec.DecodeError, TypeError, AttributeError, IndexError):
        return Position()


def later(one: str, other: str) -> bool:
    """Whether a message is newer than another; none is older than any."""
    return int(one or 0) > int(other or 0)


def sent_ms(snowflake: str) -> int:
    """When an id was made, in milliseconds since 1970."""
    return (int(snowflake) >> 22) + _EPOCH_MS


def at_ms(moment: int) -> str:
    """The lowest id of a moment."""
    return str(max(0, moment - _EPOCH_MS) << 22)
