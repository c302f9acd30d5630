"""Matrix's events as events of ours. Pure: `read` is a function of the event and of what is known around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from garra.builtin.channels.matrix.settings import Threads
from garra.builtin.channels.matrix.text import Me, words
from garra.core.value import frozen
from garra.sdk.channel import Address, ChatKind, Ignored, Inbound, Media, MediaKind, Sender

CHANNEL = "matrix"
_QUOTED = 4096
_FILES: Mapping[str, MediaKind] = {"m.image": "image", "m.audio": "audio", "m.video": "video", "m.file": "file"}
_POLLS = ("m.poll.start", "org.matrix.msc3381.poll.start")
MESSAGES = frozenset({"m.room.message", "m.sticker", *_POLLS})


@frozen
class Place:
    """A room as it stands: what kind of chat it is here, and what people in it are called."""

    room: str
    kind: ChatKind
    names: Mapping[str, str]
    threads: Threads = "inbound"


@frozen
class Answered:
    """The message that an event answers, or reacts to, as far as it could be read."""

    sender: str = ""
    text: str = ""


NOBODY = Answered()


def relation(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """`m.relates_to`, empty where there is none."""
    content = event.get("content")
    found = content.get("m.relates_to") if isinstance(content, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def target(event: Mapping[str, Any]) -> str:
    """The id of the message that an event really answers or reacts to; the fallback of a thread answers none."""
    found = relation(event)
    if found.get("rel_type") == "m.annotation":
        return str(found.get("event_id") or "")
    if found.get("rel_type") == "m.thread" and found.get("is_falling_back") is True:
        return ""
    answered = found.get("m.in_reply_to")
    return str(answered.get("event_id") or "") if isinstance(answered, Mapping) else ""


@frozen
class Reader:
    """Reads events for one account."""

    account: str
    me: Me

    def address(self, place: Place, event: Mapping[str, Any]) -> Address:
        """Where it stands, its thread included."""
        found, thread = relation(event), ""
        if place.threads != "off" and found.get("rel_type") == "m.thread":
            thread = str(found.get("event_id") or "")
        if not thread and place.threads == "always" and event.get("type") in MESSAGES:
            thread = str(event.get("event_id") or "")
        return Address(CHANNEL, self.account, place.room, place.kind, thread)

    def ignored(self, place: Place | None, event: Any, reason: str) -> Ignored:
        found = event if isinstance(event, Mapping) else {}
        address = None if place is None else Address(CHANNEL, self.account, place.room, place.kind)
        return Ignored(f"{str(found.get('event_id') or 'event')[:255]}:{reason}", address, reason, event)

    def read(self, event: Mapping[str, Any], place: Place, answered: Answered = NOBODY) -> Inbound | Ignored:
        """One event; what is unknown or misshapen is Ignored, so that it stops nothing behind it."""
        try:
            return self._read(event, place, answered)
        except (KeyError, TypeError, ValueError, AttributeError):
            return self.ignored(place, event, "malformed")

    def _read(self, event: Mapping[str, Any], place: Place, answered: Answered) -> Inbound | Ignored:
        match event["type"]:
            case "m.reaction":
                return self._happened(
                    event, place, relation(event)["key"], to=relation(event)["event_id"], answered=answered
                )
            case "m.room.member":
                return self._member(event, place)
            case "m.room.redaction":
                return self.ignored(place, event, "redaction")
            case kind if kind not in MESSAGES or "state_key" in event:
                return self.ignored(place, event, "ingest-null")
        if not event["content"]:
            return self.ignored(place, event, "redacted")
        return self._message(event, place, answered)

    def _message(self, event: Mapping[str, Any], place: Place, answered: Answered) -> Inbound | Ignored:
        content = event["content"]
        if str(content.get("msgtype")).startswith("m.key.verification."):
            return self.ignored(place, event, "verification")
        edited = relation(event).get("rel_type") == "m.replace"
        if edited:
            content = content["m.new_content"]
        files = _media(event["type"], content)
        said = words(content, self.me) if not files or _caption(content) else words({}, self.me)
        text = said.text or _told(event)
        if not text and not files:
            return self.ignored(place, event, "ingest-null")
        return Inbound(
            _text(event["event_id"]),
            "edit" if edited else "message",
            self.address(place, event),
            self._sender(event, place, content),
            text,
            int(event.get("origin_server_ts") or 0),
            mentioned=said.mentioned or (bool(answered.sender) and answered.sender == self.me.id),
            own=event["sender"] == self.me.id,
            reply_to=str(relation(event)["event_id"]) if edited else target(event),
            reply_text=answered.text[:_QUOTED],
            media=files,
            raw=event,
        )

    def _member(self, event: Mapping[str, Any], place: Place) -> Inbound:
        who, what = _text(event["state_key"]), str(event["content"]["membership"])
        return self._happened(event, place, f"bot:{what}" if who == self.me.id else f"{what}:{who}")

    def _happened(
        self, event: Mapping[str, Any], place: Place, data: str, *, to: str = "", answered: Answered = NOBODY
    ) -> Inbound:
        """A reaction (with what it is on), or a change among the members."""
        return Inbound(
            _text(event["event_id"]),
            "reaction" if to else "membership",
            self.address(place, event),
            self._sender(event, place, {}),
            timestamp=int(event.get("origin_server_ts") or 0),
            own=event["sender"] == self.me.id,
            data=str(data),
            reply_to=str(to),
            reply_text=answered.text[:_QUOTED],
            raw=event,
        )

    def _sender(self, event: Mapping[str, Any], place: Place, content: Mapping[str, Any]) -> Sender:
        """Who wrote. A notice is by convention the word of a program."""
        who = _text(event["sender"])
        return Sender(who, place.names.get(who, ""), who, is_bot=content.get("msgtype") == "m.notice")


def _text(value: Any) -> str:
    """An id. A server sends a text; anything else lets nobody in."""
    if not isinstance(value, str) or not value:
        raise TypeError(f"{value!r} is no id")
    return value


def _caption(content: Mapping[str, Any]) -> bool:
    """Whether a file's body is said beside it: it is the file's name else."""
    return isinstance(content.get("filename"), str) and content["filename"] != content.get("body")


def _media(kind: str, content: Mapping[str, Any]) -> tuple[Media, ...]:
    """The file of a message. An encrypted one is fetched by all that is needed to read it."""
    what: MediaKind | None = "sticker" if kind == "m.sticker" else _FILES.get(str(content.get("msgtype")))
    if what is None:
        return ()
    if what == "audio" and ("org.matrix.msc3245.voice" in content or "m.voice" in content):
        what = "voice"
    locked = content.get("file")
    ref = msgspec.json.encode(locked).decode() if isinstance(locked, Mapping) else _text(content["url"])
    info = content.get("info") if isinstance(content.get("info"), Mapping) else {}
    size = (info or {}).get("size")
    name = str(content.get("filename") or content.get("body") or "")
    mime = str((info or {}).get("mimetype") or "")
    return (Media(what, ref, name, mime, size if type(size) is int else None),)


def _told(event: Mapping[str, Any]) -> str:
    """In words what has none: a poll. Empty when there is no such thing."""
    for kind in _POLLS:
        if event["type"] != kind:
            continue
        content = event["content"]
        poll = content.get(kind) or content.get("m.poll") or {}
        options = " / ".join(_said(one) for one in poll.get("answers") or ())
        return f"[poll: {_said(poll.get('question') or {})}: {options}]"
    return ""


def _said(value: Mapping[str, Any]) -> str:
    """The words of one part of a poll, in the forms its drafts had."""
    blocks = value.get("m.text")
    if isinstance(blocks, list) and blocks:
        return str(blocks[0].get("body") or "")
    return str(blocks or value.get("org.matrix.msc1767.text") or value.get("body") or "")
