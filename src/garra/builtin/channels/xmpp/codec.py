"""Stanzas as events of the host. Pure: who sits in a room is handed in.

In a direct chat a person is their bare address, for which their server vouches. In a room the sender is a nick, which
anybody may take: there a person is the real address, where the room shows it to the bot, else the room's own mark for
the person (XEP-0421), which holds in that room alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element, tostring

from garra.core.value import frozen
from garra.sdk.channel import Address, EventKind, Ignored, Inbound, Media, MediaKind, Sender

CHANNEL = "xmpp"
CLIENT = "{jabber:client}"
SID, REPLY, FALLBACK = "{urn:xmpp:sid:0}", "{urn:xmpp:reply:0}", "{urn:xmpp:fallback:0}"
CORRECT, REACTIONS = "{urn:xmpp:message-correct:0}", "{urn:xmpp:reactions:0}"
OOB, MUC_USER, DELAY = "{jabber:x:oob}", "{http://jabber.org/protocol/muc#user}", "{urn:xmpp:delay}"
OCCUPANT = "{urn:xmpp:occupant-id:0}occupant-id"
_SEALED = ("{eu.siacs.conversations.axolotl}encrypted", "{urn:xmpp:omemo:2}encrypted", "{jabber:x:encrypted}x")
_ENDINGS: Mapping[str, tuple[MediaKind, str]] = {
    "jpg": ("image", "image/jpeg"), "jpeg": ("image", "image/jpeg"), "png": ("image", "image/png"),
    "gif": ("image", "image/gif"), "webp": ("image", "image/webp"), "mp4": ("video", "video/mp4"),
    "webm": ("video", "video/webm"), "mp3": ("audio", "audio/mpeg"), "ogg": ("audio", "audio/ogg"),
    "opus": ("voice", "audio/ogg"), "m4a": ("audio", "audio/mp4"), "pdf": ("file", "application/pdf"),
}  # fmt: skip


@frozen
class Occupant:
    """Somebody in a room: the real address and the room's mark, each empty where there is none to see."""

    jid: str = ""
    mark: str = ""


NOBODY = Occupant()


@frozen
class Place:
    """Where stanzas are read. `rooms` are our nicks by room; `marking` the rooms whose marks are their own."""

    account: str
    jid: str
    rooms: Mapping[str, str]
    marking: Collection[str] = ()


@frozen
class Heard:
    """A message as it came: live, or from an archive under `archive` at `at` (its time as written)."""

    xml: Element
    who: Occupant = NOBODY
    archive: str = ""
    at: str = ""


def bare(jid: str) -> str:
    return jid.partition("/")[0].lower()


def resource(jid: str) -> str:
    return jid.partition("/")[2]


def joined(own: str, archive: str) -> str:
    """A message's id: the sender's, and the archive's by which it is one of a kind."""
    return f"{own} {archive}" if own and archive else own or archive


def own_id(known: str) -> str:
    """Of such an id the part its sender gave it, by which people refer to it in direct chats."""
    return known.rpartition(" ")[0] or known


def room_id(known: str) -> str:
    """The part the room gave it, by which people refer to it there."""
    return known.rpartition(" ")[2]


def archive_id(heard: Heard, owner: str) -> str:
    """The id under which `owner` keeps it. Marks of others say nothing."""
    marks = (one.get("id", "") for one in heard.xml.findall(f"{SID}stanza-id") if bare(one.get("by", "")) == owner)
    return heard.archive or next(marks, "")


def read(heard: Heard, place: Place, now_ms: int) -> Inbound | Ignored:
    """One message."""
    xml, group = heard.xml, heard.xml.get("type") == "groupchat"
    sender = xml.get("from") or place.jid
    chat = bare(sender)
    archived = archive_id(heard, chat if group else place.jid)
    known = joined(xml.get("id", ""), archived) or f"{sender} {now_ms}"
    address = Address(CHANNEL, place.account, chat, "group" if group else "direct")
    raw = {"xml": tostring(xml, encoding="unicode")[:4000]}
    if reason := _useless(xml, chat, place, group=group):
        return Ignored(known, address, reason, raw)
    own = resource(sender) == place.rooms.get(chat) if group else chat == place.jid
    kind, text, data, about = _said(xml)
    media = _media(xml)
    if not text and not media and kind != "reaction":
        return Ignored(known, address, raw=raw)
    said, mentioned = addressed(text, place.rooms.get(chat, "")) if group else (text, True)
    answered = xml.find(f"{REPLY}reply")
    to_us = answered is not None and group and resource(answered.get("to", "")) == place.rooms.get(chat)
    return Inbound(
        known,
        kind,
        address,
        Sender(
            _identity(heard, place, chat, group=group), resource(sender) if group else chat.partition("@")[0], sender
        ),
        said,
        _when(heard) or now_ms,
        mentioned or to_us,
        own=own,
        data=data,
        reply_to=about or (answered.get("id", "") if answered is not None else ""),
        reply_text=_quoted(xml),
        media=media,
        raw=raw,
    )


def _useless(xml: Element, chat: str, place: Place, *, group: bool) -> str:
    """Why nothing follows from it; empty for what somebody said."""
    found = {
        "error": xml.get("type") == "error",
        "headline": xml.get("type") == "headline",
        "encrypted": any(xml.find(name) is not None for name in _SEALED),
        "own": chat == place.jid and not group,
        "not-in-room": group and chat not in place.rooms,
        "room-itself": group and not resource(xml.get("from") or ""),
        "room-private": not group and (chat in place.rooms or xml.find(f"{MUC_USER}x") is not None),
        "no-chat": "@" not in chat,
    }
    return next((reason for reason, so in found.items() if so), "")


def _identity(heard: Heard, place: Place, chat: str, *, group: bool) -> str:
    """An immutable id. Addresses hold no `/`, so that no mark of a room can pass for one."""
    if not group:
        return chat
    if heard.who.jid:
        return bare(heard.who.jid)
    if chat not in place.marking:
        return ""
    given = heard.xml.find(OCCUPANT)
    mark = heard.who.mark or (given.get("id", "") if given is not None else "")
    return f"{chat}/occupant-id:{mark}" if mark else ""


def _said(xml: Element) -> tuple[EventKind, str, str, str]:
    """What kind of event it is, its words, its data, and the message it is about."""
    reactions, corrects = xml.find(f"{REACTIONS}reactions"), xml.find(f"{CORRECT}replace")
    if reactions is not None:
        shown = [one.text or "" for one in reactions.findall(f"{REACTIONS}reaction")]
        return "reaction", "", " ".join(shown), reactions.get("id", "")
    text = _body(xml)
    if corrects is not None:
        return "edit", text, corrects.get("id", ""), corrects.get("id", "")
    return "message", text, "", ""


def _body(xml: Element) -> str:
    """The words, without those that only stand in for a reply, and without the bare address of a file."""
    body = xml.find(f"{CLIENT}body")
    text = (body.text or "") if body is not None else ""
    for start, end in _fallbacks(xml):
        text = text[:start] + text[end:]
    text = text.strip()
    return "" if text and text in {url for url, _ in _urls(xml)} else text


def _fallbacks(xml: Element) -> list[tuple[int, int]]:
    """Where the body repeats what a reply is about (XEP-0428), from the end on."""
    found = []
    for one in xml.findall(f"{FALLBACK}fallback"):
        part = one.find(f"{FALLBACK}body")
        if one.get("for") == REPLY.strip("{}") and part is not None:
            start, end = part.get("start", ""), part.get("end", "")
            if start.isdecimal() and end.isdecimal() and int(start) < int(end):
                found.append((int(start), int(end)))
    return sorted(found, reverse=True)[:5]


def _quoted(xml: Element) -> str:
    body = xml.find(f"{CLIENT}body")
    text = (body.text or "") if body is not None else ""
    parts = [text[start:end] for start, end in reversed(_fallbacks(xml))]
    return "\n".join(line.removeprefix(">").strip() for part in parts for line in part.strip().split("\n"))[:2000]


def _urls(xml: Element) -> list[tuple[str, str]]:
    found = []
    for one in xml.findall(f"{OOB}x"):
        url, told = one.find(f"{OOB}url"), one.find(f"{OOB}desc")
        if url is not None and (url.text or "").strip().startswith(("https://", "http://")):
            found.append(((url.text or "").strip(), (told.text or "") if told is not None else ""))
    return found[:10]


def _media(xml: Element) -> tuple[Media, ...]:
    return tuple(_file(url) for url, _ in _urls(xml))


def _file(url: str) -> Media:
    try:
        name = unquote(urlsplit(url).path.rpartition("/")[2])
    except ValueError:
        name = ""
    kind, mime = _ENDINGS.get(name.rpartition(".")[2].lower(), ("file", ""))
    return Media(kind, url, name or "file", mime)


def addressed(text: str, nick: str) -> tuple[str, bool]:
    """The words without our nick where it opens them (`nick: …`), and whether they name us at all."""
    if not nick:
        return text, False
    name = re.escape(nick)
    opening = re.match(rf"@?{name}(?:[:,;]\s*|\s+|$)", text, re.IGNORECASE)
    if opening and text[opening.end() :].strip():
        return text[opening.end() :].strip(), True
    return text, re.search(rf"(?<![\w@.-]){name}(?![\w-])|(?<!\w)@{name}(?!\w)", text, re.IGNORECASE) is not None


def _when(heard: Heard) -> int:
    delay = heard.xml.find(f"{DELAY}delay")
    return stamp_ms(heard.at or (delay.get("stamp", "") if delay is not None else ""))


def stamp_ms(text: str) -> int:
    """A time as XMPP writes it (XEP-0082); 0 for none or nonsense."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def stamp(ms: int) -> str:
    """A time as XMPP writes it."""
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
