"""Forgetting one person: which conversations are theirs, and what of others' is theirs in them.

A direct conversation goes as a whole. In a group only what they wrote goes: the message stays as a place in the tree,
without its words, so that what others said keeps its order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from garra.core import keys, transcript
from garra.core.errors import UserError
from garra.core.value import frozen

GONE: Final = "[removed: its writer was forgotten]"
_decode = msgspec.json.Decoder().decode


@frozen
class Person:
    """Somebody by the platform's id; `account` empty means at every account of the channel."""

    channel: str
    sender: str
    account: str = ""

    @property
    def shown(self) -> str:
        return f"{self.channel}:{self.sender}"


def person(text: str) -> Person:
    """`telegram:1001`, or `telegram:work:1001` for one account. Raises UserError."""
    channel, _, rest = text.strip().partition(":")
    account, colon, sender = rest.partition(":")
    if channel and colon and re.fullmatch(r"[a-z0-9_-]+", account) and sender and not account.isdigit():
        return Person(channel, sender, account)
    if channel and rest:
        return Person(channel, rest)
    raise UserError(f"{text[:80]!r} names nobody: say CHANNEL:ID, such as telegram:1001 (garra pairing list shows ids)")


def own(key: str, who: Person) -> bool:
    """Whether a session is their direct conversation."""
    found = keys.parse(key)
    if found.kind != "direct" or found.channel not in ("", who.channel):
        return False
    return found.id == who.sender and (not who.account or found.account in ("", who.account))


def family(parents: Mapping[str, Any], who: Person) -> frozenset[str]:
    """The keys of their conversations, and of those that these began; `parents` tells who began each."""
    found = {key for key in parents if own(key, who)}
    while more := {key for key, parent in parents.items() if parent in found} - found:
        found |= more
    return frozenset(found)


def without(raw: bytes, who: Person) -> bytes | None:
    """A transcript's line without what they wrote; None where none of it is theirs.

    Where several wrote one after the other and their words stand in one message, all of it goes.
    """
    try:
        body = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    message = body.get("message") if isinstance(body, dict) else None
    if not isinstance(message, dict) or message.get("role") != "user" or not _theirs(message, who):
        return None
    kept = {name: message[name] for name in ("role", "timestamp", "idempotencyKey") if name in message}
    return transcript.encode({**body, "message": {**kept, "content": [{"type": "text", "text": GONE}]}})


def _theirs(message: Mapping[str, Any], who: Person) -> bool:
    told = message.get("provenance")
    if isinstance(told, Mapping) and told.get("channel") == who.channel:
        rows = told.get("messages")
        ids = {row.get("senderId") for row in rows if isinstance(row, Mapping)} if isinstance(rows, list) else set()
        return who.sender in ids and (not who.account or told.get("accountId") in (None, who.account))
    other = message.get("__openclaw")
    if not isinstance(other, Mapping):
        return False
    transport = other.get("transport")
    channel = transport.get("channel") if isinstance(transport, Mapping) else None
    return other.get("senderId") == who.sender and channel in (None, who.channel)


_MEDIA: Final = re.compile(rb"media://([A-Za-z0-9._/-]+)")


def media(raw: bytes) -> Iterator[str]:
    """The names of files that a line tells of."""
    yield from (found[1].decode() for found in _MEDIA.finditer(raw))


@frozen
class Report:
    """What went: conversations, lines of others' conversations, stored messages in and out, files, and the lines of
    MEMORY.md and of proposals that dreams made of their words. `mentions` are notes that still name them, `left` what
    could not be removed, and why.
    """

    conversations: tuple[str, ...] = ()
    lines: int = 0
    received: int = 0
    sent: int = 0
    files: int = 0
    let_in: int = 0
    calls: int = 0
    mentions: tuple[str, ...] = ()
    promoted: int = 0
    dreamt: int = 0
    left: tuple[str, ...] = ()

    def shown(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "conversations": list(self.conversations),
            "lines": self.lines,
            "received": self.received,
            "sent": self.sent,
            "files": self.files,
            "pairings": self.let_in,
            "ledgerRows": self.calls,
            "mentions": list(self.mentions),
            "promoted": self.promoted,
            "dreamt": self.dreamt,
            "left": list(self.left),
        }
