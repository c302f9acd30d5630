"""Discord's events as events of ours. Pure: who the bot is and what its channels are is handed in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from garra.builtin.channels.discord.position import sent_ms
from garra.builtin.channels.discord.spoken import media, words
from garra.core.value import frozen
from garra.sdk.channel import Address, ChatKind, Ignored, Inbound, Sender

CHANNEL = "discord"
THREADS = frozenset({10, 11, 12})
_SAID = frozenset({0, 19, 20, 23})
"""Kinds of messages that somebody wrote; all others are notices."""
_JOINED = 7
_GROUP_DM = 3
_QUOTED = 4096
_BUTTON, _COMPONENT = 2, 3


@frozen
class Room:
    """A channel: `kind` is Discord's number, `parent` the channel a thread belongs to. `last` is its last message."""

    id: str
    kind: int = 0
    parent: str = ""
    guild: str = ""
    name: str = ""
    last: str = ""

    @property
    def of(self) -> str:
        """The channel it is a thread of; empty for what is no thread."""
        return self.parent if self.kind in THREADS else ""


@frozen
class Me:
    """The bot. `roles` are those it has in the server of the event."""

    id: str
    roles: frozenset[str] = frozenset()


@frozen
class Event:
    """One dispatch: `name` and `body` as Discord has them; `mark` names it where it has no id of its own."""

    name: str
    body: Any
    mark: str


@frozen
class Reader:
    """Reads events for one account. `reactions`: `own` hears only those on messages of the bot."""

    account: str
    reactions: str = "own"

    def read(self, event: Event, me: Me, room: Room | None) -> Inbound | Ignored:
        """One event; what is unknown or misshapen is Ignored, so that it stops nothing behind it."""
        try:
            match event.name:
                case "MESSAGE_CREATE":
                    return self._message(event, me, room)
                case "MESSAGE_UPDATE":
                    return self._edited(event, me, room)
                case "MESSAGE_DELETE":
                    return self._deleted(event, room)
                case "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE":
                    return self._reaction(event, me, room)
                case "INTERACTION_CREATE":
                    return self._button(event, room)
            return self._null(event, "ingest-null")
        except (KeyError, TypeError, ValueError, AttributeError):
            return self._null(event, "malformed")

    def _null(self, event: Event, reason: str, address: Address | None = None) -> Ignored:
        return Ignored(event.mark, address, reason, _untold(event.body))

    def address(self, body: Mapping[str, Any], room: Room | None) -> Address:
        """Where an event stands: a thread is a chat of its own, below its channel."""
        chat, guild = snowflake(body["channel_id"]), str(body.get("guild_id") or (room.guild if room else ""))
        kind: ChatKind = "channel" if guild else "direct"
        if not guild and room is not None and room.kind == _GROUP_DM:
            kind = "group"
        roles = tuple(str(role) for role in (body.get("member") or {}).get("roles") or ())
        return Address(CHANNEL, self.account, chat, kind, parent=room.of if room else "", guild=guild, roles=roles)

    def _message(self, event: Event, me: Me, room: Room | None) -> Inbound | Ignored:
        body = event.body
        number, address = snowflake(body["id"]), self.address(body, room)
        if body.get("type", 0) == _JOINED:
            joined = f"joined:{snowflake(body['author']['id'])}"
            return Inbound(number, "membership", address, sender(body), "", sent_ms(number), data=joined, raw=body)
        if body.get("type", 0) not in _SAID:
            return self._null(event, "service", address)
        return self._spoken(event, me, address) or self._null(event, "ingest-null", address)

    def _spoken(self, event: Event, me: Me, address: Address, *, edited: int = 0) -> Inbound | None:
        body = event.body
        number = snowflake(body["id"])
        text, files = words(body, me.id, me.roles), media(body)
        if not text and not files:
            return None
        answered, quoted = _answered(body)
        return Inbound(
            f"{number}:edit:{edited}" if edited else number,
            "edit" if edited else "message",
            address,
            sender(body),
            text,
            edited or sent_ms(number),
            mentioned=addressed(body, me) or _author(quoted) == me.id,
            own=_author(body) == me.id,
            reply_to=answered,
            reply_text=str(quoted.get("content") or "")[:_QUOTED],
            media=files,
            raw=body,
        )

    def _edited(self, event: Event, me: Me, room: Room | None) -> Inbound | Ignored:
        """Discord also calls it an edit when a preview has been made; then nobody has changed a word."""
        body = event.body
        address = self.address(body, room)
        if not body.get("edited_timestamp") or "author" not in body:
            return self._null(event, "service", address)
        changed = round(datetime.fromisoformat(str(body["edited_timestamp"])).timestamp() * 1000)
        return self._spoken(event, me, address, edited=changed) or self._null(event, "ingest-null", address)

    def _deleted(self, event: Event, room: Room | None) -> Inbound:
        gone = snowflake(event.body["id"])
        address = self.address(event.body, room)
        return Inbound(event.mark, "other", address, Sender(""), data="deleted", reply_to=gone, raw=event.body)

    def _reaction(self, event: Event, me: Me, room: Room | None) -> Inbound | Ignored:
        """`data` is the emoji that is new, empty when one was taken back."""
        body, added = event.body, event.name.endswith("ADD")
        address, emoji = self.address(body, room), body["emoji"]
        author = body.get("message_author_id")
        if self.reactions == "own" and author is not None and str(author) != me.id:
            return self._null(event, "reaction-not-wanted", address)
        user = snowflake(body["user_id"])
        known = (body.get("member") or {}).get("user") or {}
        return Inbound(
            event.mark,
            "reaction",
            address,
            Sender(user, _name(known), str(known.get("username") or ""), bool(known.get("bot"))),
            own=user == me.id,
            data=str(emoji.get("name") or emoji.get("id") or "") if added else "",
            reply_to=snowflake(body["message_id"]),
            raw=body,
        )

    def _button(self, event: Event, room: Room | None) -> Inbound | Ignored:
        body = event.body
        data = body.get("data") or {}
        if body.get("type") != _COMPONENT or data.get("component_type") != _BUTTON:
            return self._null(event, "ingest-null")
        number, message = snowflake(body["id"]), body["message"]
        user = (body.get("member") or {}).get("user") or body["user"]
        return Inbound(
            f"button:{number}",
            "button",
            self.address(body, room),
            _user(user),
            timestamp=sent_ms(number),
            mentioned=True,
            data=str(data["custom_id"]),
            reply_to=snowflake(message["id"]),
            reply_text=str(message.get("content") or "")[:_QUOTED],
            raw=_untold(body),
        )


def snowflake(value: Any) -> str:
    """An id of Discord's. What only looks like one lets nobody in. Raises ValueError."""
    if not isinstance(value, str) or not value.isascii() or not value.isdecimal() or len(value) > 20:
        raise ValueError("no id")
    return value


def addressed(body: Mapping[str, Any], me: Me) -> bool:
    """Whether the bot is named: itself, or a role that it has. @everyone names nobody."""
    named = any(str(user.get("id")) == me.id for user in body.get("mentions") or ())
    return named or not me.roles.isdisjoint(str(role) for role in body.get("mention_roles") or ())


def sender(body: Mapping[str, Any]) -> Sender:
    """Who wrote. A webhook is no user, whatever name it gives itself: its id says so."""
    if hook := body.get("webhook_id"):
        return Sender(f"webhook:{snowflake(hook)}", _name(body["author"]), is_bot=True)
    return _user(body["author"], (body.get("member") or {}).get("nick"))


def _user(user: Mapping[str, Any], nick: Any = None) -> Sender:
    name = str(nick or _name(user))
    return Sender(snowflake(user["id"]), name, str(user.get("username") or ""), bool(user.get("bot")))


def _name(user: Mapping[str, Any]) -> str:
    return str(user.get("global_name") or user.get("username") or "")


def _author(body: Mapping[str, Any]) -> str:
    return "" if body.get("webhook_id") else str((body.get("author") or {}).get("id") or "")


def _answered(body: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The message this one answers: its id, and itself where Discord sends it along."""
    reference = body.get("message_reference") or {}
    if reference.get("type", 0) != 0 or not reference.get("message_id"):
        return "", {}
    return str(reference["message_id"]), body.get("referenced_message") or {}


def _untold(body: Any) -> Any:
    """An event for the record: an interaction's token answers in the bot's name, so it is not kept."""
    return {key: value for key, value in body.items() if key != "token"} if isinstance(body, Mapping) else body


def room(body: Mapping[str, Any], guild: str = "") -> Room:
    """A channel as Discord tells it. Raises KeyError, TypeError and ValueError."""
    return Room(
        snowflake(body["id"]),
        int(body.get("type") or 0),
        str(body.get("parent_id") or ""),
        str(body.get("guild_id") or guild),
        str(body.get("name") or ""),
        str(body.get("last_message_id") or ""),
    )
