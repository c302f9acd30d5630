"""Messages of ours as stanzas, and what a refusal means for them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement

from garra.builtin.channels.xmpp.codec import (
    CLIENT,
    CORRECT,
    OOB,
    REACTIONS,
    REPLY,
    own_id,
    room_id,
)
from garra.core.value import frozen
from garra.sdk.channel import Address, Fault, Outbound, SendFailed

STATES = "{http://jabber.org/protocol/chatstates}"
HINTS = "{urn:xmpp:hints}"
_ERRORS = "{urn:ietf:params:xml:ns:xmpp-stanzas}"
_FAULTS: Mapping[str, Fault] = {
    "item-not-found": "gone",
    "gone": "gone",
    "recipient-unavailable": "gone",
    "remote-server-not-found": "gone",
    "service-unavailable": "gone",
    "not-acceptable": "gone",
    "jid-malformed": "gone",
    "remote-server-timeout": "passing",
    "resource-constraint": "passing",
    "internal-server-error": "passing",
}
_BAD = frozenset("\x00 \t\r\n<>\"'&")


@frozen
class Stanza:
    """A message to send, and the id by which it is known."""

    id: str
    xml: Element


def message_id(key: str) -> str:
    """The same at each try of one message."""
    return "garra-" + hashlib.sha256(key.encode()).hexdigest()[:32]


def target(address: Address) -> str:
    """Raises SendFailed for what is no address."""
    user, at, domain = address.chat.partition("@")
    if not (user and at and domain) or "/" in address.chat or _BAD & set(address.chat):
        raise SendFailed("refused", f"{address.chat[:80]!r} is no address of XMPP")
    return address.chat


def spoken(message: Outbound, urls: Sequence[str] = ()) -> list[Stanza]:
    """The words, then each file as a message of its own, as clients show them. Raises SendFailed."""
    text = clean("\n".join([message.text, *(" ".join(f"[{one.label}]" for one in row) for row in message.buttons)]))
    bodies = [(text.strip("\n"), "")] if text.strip() else []
    bodies += [(url, url) for url in urls]
    if not bodies:
        raise SendFailed("refused", "there is nothing to send")
    made = []
    for at, (body, url) in enumerate(bodies):
        stanza = _message(message.address, message_id(message.key if at == 0 else f"{message.key}#{at}"))
        SubElement(stanza.xml, f"{CLIENT}body").text = body
        if url:
            SubElement(SubElement(stanza.xml, f"{OOB}x"), f"{OOB}url").text = url
        if message.reply_to and at == 0:
            SubElement(stanza.xml, f"{REPLY}reply", {"id": _meant(message.address, message.reply_to)})
        SubElement(stanza.xml, f"{STATES}active")
        made.append(stanza)
    return made


def change(message_id_: str, message: Outbound, number: int) -> Stanza:
    """New words for a message (XEP-0308); it is named by the id it was first sent with."""
    text = clean(message.text)
    if not text.strip():
        raise SendFailed("refused", "there is nothing to send")
    stanza = _message(message.address, message_id(f"{message_id_} {number} {text}"))
    SubElement(stanza.xml, f"{CLIENT}body").text = text
    SubElement(stanza.xml, f"{CORRECT}replace", {"id": own_id(message_id_)})
    return stanza


def reaction(address: Address, message: str, emoji: str, number: int) -> Stanza:
    stanza = _message(address, message_id(f"{message} {emoji} {number}"))
    shown = SubElement(stanza.xml, f"{REACTIONS}reactions", {"id": _meant(address, message)})
    if emoji:
        SubElement(shown, f"{REACTIONS}reaction").text = emoji
    SubElement(stanza.xml, f"{HINTS}store")
    return stanza


def typing(address: Address, number: int) -> Stanza:
    stanza = _message(address, f"garra-typing-{number}")
    SubElement(stanza.xml, f"{STATES}composing")
    SubElement(stanza.xml, f"{HINTS}no-store")
    return stanza


def _message(address: Address, name: str) -> Stanza:
    kind = "chat" if address.kind == "direct" else "groupchat"
    return Stanza(name, Element(f"{CLIENT}message", {"to": target(address), "type": kind, "id": name}))


def _meant(address: Address, known: str) -> str:
    """How a message is referred to: in a room by the room's id, else by its sender's."""
    return own_id(known) if address.kind == "direct" else room_id(known)


def clean(text: str) -> str:
    """Without what XML cannot carry."""
    return "".join(
        char
        for char in text
        if char in "\t\n" or (char >= " " and not "\ud800" <= char <= "\udfff" and char not in "\ufffe\uffff")
    )


def refusal(xml: Element) -> SendFailed:
    """What an answer of type error means for the message."""
    error = xml.find(f"{CLIENT}error")
    kinds = [one.tag.removeprefix(_ERRORS) for one in error or () if one.tag.startswith(_ERRORS)]
    said = next((one.text or "" for one in error or () if one.tag == f"{_ERRORS}text"), "")
    condition = next((kind for kind in kinds if kind != "text"), "undefined-condition")
    line = f"the server says of {xml.get('from', '')[:100]}: {condition} {said[:200]}".strip()
    if error is not None and error.get("type") == "wait":
        return SendFailed("passing", line)
    return SendFailed(_FAULTS.get(condition, "refused"), line)
