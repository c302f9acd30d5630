"""Slack's envelopes as events of ours. Pure: who the bot is, what channels are and people are called is handed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.builtin.channels.slack import teams
from garra.builtin.channels.slack.emoji import shown
from garra.builtin.channels.slack.position import ms
from garra.builtin.channels.slack.spoken import media, mentions, words
from garra.core.value import frozen
from garra.sdk.channel import Address, ChatKind, EventKind, Ignored, Inbound, Sender

CHANNEL = "slack"
_SAID = frozenset({None, "file_share", "thread_broadcast", "me_message", "bot_message"})
"""Kinds of messages that somebody wrote; all others are notices."""
_KINDS: Mapping[str, ChatKind] = {"im": "direct", "mpim": "group"}
_QUOTED = 4096
_SECRET = frozenset({"token", "response_url", "trigger_id", "response_urls"})


@frozen
class Me:
    """The bot: its user, its bot id (what its messages carry), its workspace."""

    user: str
    bot: str = ""
    team: str = ""
    name: str = ""


@frozen
class Facts:
    """What is known besides the event: the kind of its channel, the sender's name and handle."""

    kind: str = ""
    name: str = ""
    handle: str = ""


@frozen
class Reader:
    """Reads envelopes for one account. `reactions`: `own` hears only those on messages of the bot."""

    account: str
    me: Me
    reactions: str = "own"

    def read(self, kind: str, payload: Any, facts: Facts) -> Inbound | Ignored:
        """One envelope; what is unknown or misshapen is Ignored, so that it stops nothing behind it."""
        try:
            if not teams.ours(kind, payload, self.me.team):
                return self._null(payload, "another-workspace")
            match kind:
                case "events_api":
                    return self._event(payload, payload["event"], facts)
                case "interactive":
                    return self._button(payload, facts)
                case "slash_commands":
                    return self._command(payload, facts)
            return self._null(payload, "ingest-null")
        except (KeyError, TypeError, ValueError, AttributeError):
            return self._null(payload, "malformed")

    def _null(self, payload: Any, reason: str, address: Address | None = None) -> Ignored:
        named = payload.get("event_id") if isinstance(payload, Mapping) else None
        return Ignored(str(named or "envelope"), address, reason, untold(payload))

    def _event(self, payload: Mapping[str, Any], event: Mapping[str, Any], facts: Facts) -> Inbound | Ignored:
        match event["type"]:
            case "message" | "app_mention":
                return self._message(payload, event, facts)
            case "reaction_added" | "reaction_removed":
                return self._reaction(payload, event, facts)
            case "member_joined_channel" | "member_left_channel":
                data = ("joined:" if "joined" in event["type"] else "left:") + self._person(event["user"], event)
                return self._happened("membership", payload, event, facts, data=data)
        return self._null(payload, "ingest-null")

    def address(self, chat: Any, event: Mapping[str, Any], facts: Facts) -> Address:
        """Where an event stands. A thread's first message stands in the chat itself."""
        chat = _id(chat)
        kind = _KINDS.get(str(event.get("channel_type") or facts.kind), "direct" if chat[0] == "D" else "channel")
        thread = str(event.get("thread_ts") or "")
        inside = thread if thread and thread != event.get("ts") else ""
        return Address(CHANNEL, self.account, chat, kind, inside, team=self.me.team)

    def _message(self, payload: Mapping[str, Any], event: Mapping[str, Any], facts: Facts) -> Inbound | Ignored:
        match event.get("subtype"):
            case "message_changed":
                return self._edited(payload, event, facts)
            case "message_deleted":
                gone = str(event["deleted_ts"])
                return self._happened("other", payload, event, facts, data="deleted", reply_to=gone)
            case subtype if subtype not in _SAID:
                return self._null(payload, "service", self.address(event["channel"], event, facts))
        found = self._spoken(event["channel"], event, facts, payload)
        return found or self._null(payload, "ingest-null", self.address(event["channel"], event, facts))

    def _spoken(
        self, chat: Any, said: Mapping[str, Any], facts: Facts, payload: Mapping[str, Any], *, edited: str = ""
    ) -> Inbound | None:
        text, files = words(said, self.me.user), media(said)
        if not text and not files:
            return None
        number = _ts(said["ts"])
        address = self.address(chat, said, facts)
        return Inbound(
            f"{number}:edit:{edited}" if edited else number,
            "edit" if edited else "message",
            address,
            self._sender(said, facts),
            text,
            ms(edited or number),
            mentioned=mentions(said, self.me.user) or said.get("parent_user_id") == self.me.user,
            own=self._own(said),
            media=files,
            raw=untold(payload),
        )

    def _edited(self, payload: Mapping[str, Any], event: Mapping[str, Any], facts: Facts) -> Inbound | Ignored:
        """Slack also calls it a change when a preview has been made; then nobody has changed a word."""
        said = {**teams.told(event), **event["message"], "channel_type": event.get("channel_type")}
        address = self.address(event["channel"], said, facts)
        changed = str((said.get("edited") or {}).get("ts") or "")
        before = (event.get("previous_message") or {}).get("edited") or {}
        if not changed or before.get("ts") == changed or said.get("subtype") not in _SAID:
            return self._null(payload, "service", address)
        found = self._spoken(event["channel"], said, facts, payload, edited=_ts(changed))
        return found or self._null(payload, "ingest-null", address)

    def _happened(
        self, kind: EventKind, payload: Mapping[str, Any], event: Mapping[str, Any], facts: Facts, **more: Any
    ) -> Inbound:
        sender = self._who(event["user"], event, facts) if event.get("user") else Sender("")
        address = self.address(event["channel"], {**event, "thread_ts": ""}, facts)
        when = ms(str(event.get("event_ts") or ""))
        return Inbound(str(payload["event_id"]), kind, address, sender, "", when, raw=untold(payload), **more)

    def _reaction(self, payload: Mapping[str, Any], event: Mapping[str, Any], facts: Facts) -> Inbound | Ignored:
        """`data` is the emoji that is new, empty when one was taken back."""
        item = event["item"]
        if item.get("type") != "message":
            return self._null(payload, "ingest-null")
        flat = {**event, "channel": item["channel"]}
        if self.reactions == "off" or (self.reactions == "own" and event.get("item_user") != self.me.user):
            return self._null(payload, "reaction-not-wanted", self.address(item["channel"], {}, facts))
        data = shown(str(event["reaction"])) if event["type"].endswith("added") else ""
        own = self._person(event["user"], event) == self.me.user
        return self._happened("reaction", payload, flat, facts, data=data, reply_to=_ts(item["ts"]), own=own)

    def _button(self, payload: Mapping[str, Any], facts: Facts) -> Inbound | Ignored:
        action = next((one for one in payload.get("actions") or () if one.get("type") == "button"), None)
        if payload.get("type") != "block_actions" or action is None or not payload.get("message"):
            return self._null(payload, "ingest-null")
        message, user = payload["message"], payload["user"]
        where = {"thread_ts": message.get("thread_ts"), "ts": message["ts"]}
        known = Facts("", facts.name or str(user.get("name") or ""), str(user.get("username") or ""))
        sender = self._who(user["id"], {"team": user.get("team_id")}, known)
        return Inbound(
            f"button:{_ts(message['ts'])}:{_ts(action['action_ts'])}",
            "button",
            self.address(payload["channel"]["id"], where, facts),
            sender,
            timestamp=ms(action["action_ts"]),
            mentioned=True,
            data=str(action["value"]),
            reply_to=str(message["ts"]),
            reply_text=str(message.get("text") or "")[:_QUOTED],
            raw=untold(payload),
        )

    def _command(self, payload: Mapping[str, Any], facts: Facts) -> Inbound | Ignored:
        """`/garra what now?` says the rest to the bot."""
        sender = Sender(person(payload["user_id"]), facts.name, str(payload.get("user_name") or ""))
        return Inbound(
            f"slash:{payload['trigger_id']}",
            "message",
            self.address(payload["channel_id"], {}, facts),
            sender,
            str(payload.get("text") or "").strip() or "/help",
            mentioned=True,
            raw=untold(payload),
        )

    def _own(self, said: Mapping[str, Any]) -> bool:
        by_bot = bool(self.me.bot) and said.get("bot_id") == self.me.bot
        return not teams.foreign(said, self.me.team) and (by_bot or said.get("user") == self.me.user)

    def _person(self, user: Any, said: Mapping[str, Any]) -> str:
        """A person's id. An id is one of its workspace alone: one of another has the workspace before it."""
        team = teams.foreign(said, self.me.team)
        return f"{_id(team)}/{person(user)}" if team else person(user)

    def _who(self, user: Any, said: Mapping[str, Any], facts: Facts, *, is_bot: bool = False) -> Sender:
        """Names are looked up in our workspace, so somebody of another has none."""
        found = self._person(user, said)
        named = Facts() if "/" in found else facts
        return Sender(found, named.name, named.handle, is_bot)

    def _sender(self, said: Mapping[str, Any], facts: Facts) -> Sender:
        """Who wrote. An app that posts under a name of its choice is no user: its id says so."""
        bot = said.get("bot_id")
        if said.get("user"):
            return self._who(said["user"], said, facts, is_bot=bool(bot))
        return Sender(f"bot:{_id(bot)}", str(said.get("username") or ""), is_bot=True)


def untold(payload: Any) -> Any:
    """An envelope for the record, without what could act in the app's name."""
    return {k: v for k, v in payload.items() if k not in _SECRET} if isinstance(payload, Mapping) else payload


def person(value: Any) -> str:
    """A user's id: letters and digits after U or W. What only looks like one lets nobody in. Raises ValueError."""
    found = _id(value)
    if found[0] not in "UW":
        raise ValueError("no user")
    return found


def _id(value: Any) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isalnum() or value != value.upper():
        raise ValueError("no id")
    return value


def _ts(value: Any) -> str:
    if not isinstance(value, str) or ms(value) <= 0:
        raise ValueError("no message number")
    return value
