"""Telegram's updates as events of ours. Pure: `read` is a function of the update and of who the bot is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.builtin.channels.telegram.attached import media, told
from garra.builtin.channels.telegram.text import Me, words
from garra.core.value import frozen
from garra.sdk.channel import Address, ChatKind, EventKind, Ignored, Inbound, Sender

KINDS = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "callback_query",
    "message_reaction",
    "my_chat_member",
)
"""The updates asked for; a reaction is sent only to who asks, and in groups to admins."""
CHANNEL = "telegram"
GENERAL = "1"
"""A forum's first topic. Messages into it must not name it; the typing sign must."""
_CHATS: Mapping[str, ChatKind] = {"private": "direct", "group": "group", "supergroup": "group", "channel": "channel"}
_QUOTED = 4096


@frozen
class Reader:
    """Reads updates for one account."""

    account: str
    me: Me

    def read(self, update: Mapping[str, Any]) -> Inbound | Ignored:
        """One event; what is unknown or misshapen is Ignored, so that it stops nothing behind it."""
        try:
            return self._read(update)
        except (KeyError, TypeError, ValueError, AttributeError):
            return self._null(update, "malformed")

    def _read(self, update: Mapping[str, Any]) -> Inbound | Ignored:
        for kind in KINDS:
            if body := update.get(kind):
                match kind:
                    case "callback_query":
                        return self._button(update, body)
                    case "message_reaction":
                        return self._reaction(update, body)
                    case "my_chat_member":
                        return self._membership(update, body)
                    case _:
                        return self._message(update, body, edited=kind.startswith("edited"))
        return self._null(update, "ingest-null")

    def _null(self, update: Mapping[str, Any], reason: str, address: Address | None = None) -> Ignored:
        return Ignored(f"update:{update.get('update_id', '')}", address, reason, update)

    def address(self, message: Mapping[str, Any]) -> Address:
        """Where a message stands, its topic included."""
        chat = message["chat"]
        return Address(CHANNEL, self.account, str(int(chat["id"])), _CHATS[chat["type"]], self._thread(message, chat))

    def _thread(self, message: Mapping[str, Any], chat: Mapping[str, Any]) -> str:
        """The topic. In a group without topics the number only says which message was answered: that is none."""
        number = message.get("message_thread_id")
        if chat["type"] == "private":
            return str(number) if number and (self.me.topics or message.get("is_topic_message")) else ""
        if number and (message.get("is_topic_message") or chat.get("is_forum")):
            return str(number)
        return GENERAL if chat.get("is_forum") else ""

    def _message(self, update: Mapping[str, Any], message: Mapping[str, Any], *, edited: bool) -> Inbound | Ignored:
        address = self.address(message)
        if event := self._service(update, message, address):
            return event
        said, files = words(message, self.me), media(message)
        text = said.text or told(message)
        if not text and not files:
            return self._null(update, "ingest-null", address)
        sender = _sender(message)
        number, answered = str(int(message["message_id"])), _answered(message)
        return Inbound(
            f"{number}:edit:{int(message.get('edit_date', 0))}" if edited else number,
            "edit" if edited else "message",
            address,
            sender,
            text,
            int(message.get("edit_date" if edited else "date", 0)) * 1000,
            mentioned=said.mentioned or _from_id(answered) == self.me.id,
            own=_from_id(message) == self.me.id,
            reply_to=str(answered["message_id"]) if answered else "",
            reply_text=_quoted(message, answered),
            media=files,
            raw=update,
        )

    def _service(
        self, update: Mapping[str, Any], message: Mapping[str, Any], address: Address
    ) -> Inbound | Ignored | None:
        """An event for a notice such as "X joined"; None for what somebody said."""
        if to := message.get("migrate_to_chat_id"):
            return self._happened(update, message, "membership", f"migrated:{int(to)}")
        if joined := message.get("new_chat_members"):
            return self._happened(
                update, message, "membership", "joined:" + ",".join(str(user["id"]) for user in joined)
            )
        if left := message.get("left_chat_member"):
            return self._happened(update, message, "membership", f"left:{left['id']}")
        return self._null(update, "service", address) if SERVICE & message.keys() else None

    def _happened(self, update: Mapping[str, Any], body: Mapping[str, Any], event: EventKind, data: str) -> Inbound:
        when = int(body.get("date", 0)) * 1000
        number = f"update:{update['update_id']}"
        return Inbound(number, event, self.address(body), _sender(body), timestamp=when, data=data, raw=update)

    def _membership(self, update: Mapping[str, Any], body: Mapping[str, Any]) -> Inbound:
        """What became of the bot itself in a chat: member, administrator, left, kicked …"""
        return self._happened(update, body, "membership", f"bot:{body['new_chat_member']['status']}")

    def _button(self, update: Mapping[str, Any], query: Mapping[str, Any]) -> Inbound | Ignored:
        message = query.get("message")
        if not message or "data" not in query:
            return self._null(update, "ingest-null")
        return Inbound(
            f"button:{query['id']}",
            "button",
            self.address(message),
            _user(query["from"]),
            timestamp=int(message.get("date") or 0) * 1000,
            mentioned=True,
            data=str(query["data"]),
            reply_to=str(message["message_id"]),
            reply_text=str(message.get("text") or message.get("caption") or "")[:_QUOTED],
            raw=update,
        )

    def _reaction(self, update: Mapping[str, Any], body: Mapping[str, Any]) -> Inbound:
        """`data` is the emojis that are new, empty when one was taken back."""
        before = {_emoji(one) for one in body.get("old_reaction") or ()}
        new = [emoji for one in body.get("new_reaction") or () if (emoji := _emoji(one)) not in before]
        sender = _sender({"chat": body["chat"], "from": body.get("user"), "sender_chat": body.get("actor_chat")})
        return Inbound(
            f"update:{update['update_id']}",
            "reaction",
            self.address(body),
            sender,
            timestamp=int(body.get("date", 0)) * 1000,
            data="".join(new),
            reply_to=str(body["message_id"]),
            raw=update,
        )


SERVICE = frozenset(
    {
        "new_chat_title", "new_chat_photo", "delete_chat_photo", "group_chat_created", "supergroup_chat_created",
        "channel_chat_created", "message_auto_delete_timer_changed", "migrate_from_chat_id", "pinned_message",
        "forum_topic_created", "forum_topic_edited", "forum_topic_closed", "forum_topic_reopened",
        "general_forum_topic_hidden", "general_forum_topic_unhidden", "video_chat_started", "video_chat_ended",
        "video_chat_scheduled", "video_chat_participants_invited", "users_shared", "chat_shared", "boost_added",
        "write_access_allowed", "web_app_data", "proximity_alert_triggered", "successful_payment", "connected_website",
    }
)  # fmt: skip
"""Notices Telegram sends as messages that nobody wrote."""


def _sender(message: Mapping[str, Any]) -> Sender:
    """Who wrote. A chat that speaks as itself (a channel, an anonymous admin) is no user: its id says so. In a private
    chat there is nobody but a user.
    """
    private = message["chat"].get("type") == "private"
    if behind := message.get("sender_chat"):
        return Sender("") if private else _chat(behind)
    if message.get("from"):
        return _user(message["from"])
    return Sender("") if private else _chat(message["chat"])


def _user(user: Mapping[str, Any]) -> Sender:
    name = " ".join(filter(None, (user.get("first_name"), user.get("last_name"))))
    return Sender(_person(user["id"]), name, str(user.get("username") or ""), bool(user.get("is_bot")))


def _person(number: Any) -> str:
    """A user's id. Telegram sends a number above zero; a text that only reads like one lets nobody in, nor a chat's."""
    if type(number) is not int or number <= 0:
        raise TypeError(f"{number!r} is no user id")
    return str(number)


def _chat(chat: Mapping[str, Any]) -> Sender:
    if not chat.get("id"):
        return Sender("")
    return Sender(f"chat:{int(chat['id'])}", str(chat.get("title") or ""), str(chat.get("username") or ""))


def _answered(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The message this one answers. In a topic Telegram names the topic's first notice where none was answered."""
    found: Mapping[str, Any] | None = message.get("reply_to_message")
    return None if found is None or "forum_topic_created" in found else found


def _from_id(message: Mapping[str, Any] | None) -> int:
    return int(((message or {}).get("from") or {}).get("id") or 0)


def _quoted(message: Mapping[str, Any], answered: Mapping[str, Any] | None) -> str:
    part = (message.get("quote") or {}).get("text")
    whole = (answered or {}).get("text") or (answered or {}).get("caption")
    return str(part or whole or "")[:_QUOTED]


def _emoji(reaction: Mapping[str, Any]) -> str:
    return str(reaction.get("emoji") or reaction.get("custom_emoji_id") or "⭐")
