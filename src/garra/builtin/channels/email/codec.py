"""Mails as events of the host. Pure.

The chat is the person's address, the thread the id of the mail that began it. Nobody is who a From says before the
receiving server has said so; and what a program sent, or what went to a list, is never answered (RFC 3834).
"""

from __future__ import annotations

import hashlib
import re

from garra.builtin.channels.email.letter import Letter, Part
from garra.builtin.channels.email.proof import proven
from garra.core.value import frozen
from garra.sdk.channel import Address, Ignored, Inbound, Media, MediaKind, Sender

CHANNEL = "email"
THREAD_CHARS = 200
TEXT_CHARS = 200_000
_WORD = r"[^\s<>()\[\],;:\\\"@\x00-\x1f\x7f\ud800-\udfff\ufffd]"
_ADDRESS = re.compile(rf"{_WORD}{{1,64}}@{_WORD}{{1,255}}")
_MACHINES = re.compile(
    r"^(?:mailer-daemon|postmaster|no[-_]?reply|do[-_]?not[-_]?reply|bounces?|.*-bounces|.*-request)(?:[+=].*)?@"
)
_BULK = frozenset({"auto_reply", "bulk", "junk", "list"})
_LISTS = ("list-id", "list-post", "list-unsubscribe", "mailing-list")
_MADE = ("x-autoreply", "x-autorespond", "x-autoresponse", "x-auto-reply")


@frozen
class Place:
    """Whose mailbox it is, and what its owner believes."""

    account: str
    own: str
    receivers: tuple[str, ...] = ()
    credulous: bool = False


@frozen
class Read:
    """An event, and why its sender is not known; empty where they are."""

    event: Inbound | Ignored
    unknown: str = ""


def valid(address: str) -> bool:
    """Whether it is a plain address; nothing that could become a second one, or another header."""
    return _ADDRESS.fullmatch(address) is not None


def read(letter: Letter, place: Place, ref: str, now_ms: int) -> Read:
    """One mail as an event. `ref` names it in the mailbox."""
    thread = root(letter)
    raw = {
        key: (letter.head(key) or "")[:2_000] or None
        for key in ("from", "to", "subject", "date", "message-id", "authentication-results")
    }
    senders = letter.senders
    if len(senders) != 1 or not valid(senders[0][0]):
        return Read(Ignored(letter.id, None, "no-single-sender" if senders else "no-sender", raw))
    address, name = senders[0][0].casefold(), senders[0][1]
    chat = Address(CHANNEL, place.account, address, "direct", thread)
    if reason := machine(letter, address, place.own.casefold()):
        return Read(Ignored(letter.id, chat, reason, raw))
    media = tuple(_media(part, ref) for part in letter.parts)
    text = _said(letter)
    if not text and not media:
        return Read(Ignored(letter.id, chat, raw=raw))
    if why := unproven(
        letter, address, place
    ):  # a stranger with a borrowed name does not stand in the queue of whose name it is
        chat = Address(CHANNEL, place.account, f"unproven:{address}", "direct", thread)
    event = Inbound(
        letter.id,
        "message",
        chat,
        Sender("" if why else address, name or address, address),
        text,
        letter.date_ms or now_ms,
        mentioned=True,
        reply_to=letter.answers,
        media=media,
        raw=raw,
    )
    return Read(event, why)


def known(letter: Letter, place: Place) -> bool:
    """Whether its headers prove its sender, and it may want an answer: only then its words are worth reading."""
    if len(letter.senders) != 1 or not valid(letter.senders[0][0]):
        return False
    address = letter.senders[0][0].casefold()
    return not unproven(letter, address, place) and not machine(letter, address, place.own.casefold())


def unproven(letter: Letter, address: str, place: Place) -> str:
    """Why nobody vouches for the sender; empty where somebody does."""
    if place.credulous:
        return ""
    return proven(address.rpartition("@")[2], letter.every("authentication-results"), place.receivers)


def machine(letter: Letter, address: str, own: str) -> str:
    """Why this mail is never answered; empty for one that a person wrote."""
    found = {
        "own": address == own,
        "auto-submitted": any(_word(each) != "no" for each in letter.every("auto-submitted")),
        "bulk": any(_word(each) in _BULK for each in letter.every("precedence")),
        "list": any(letter.head(key) is not None for key in _LISTS),
        "null-return-path": (letter.head("return-path") or "<x>").strip() in {"<>", ""},
        "report": letter.kind in {"multipart/report", "message/delivery-status", "message/disposition-notification"},
        "machine": _MACHINES.match(address) is not None,
        "auto-reply": any(letter.head(key) is not None for key in _MADE),
    }
    return next((reason for reason, so in found.items() if so), "")


def _word(value: str) -> str:
    """The word that a header begins with: neither its comments nor its parameters."""
    return re.split(r"[;\s(]", value.strip(), maxsplit=1)[0].lower()


def root(letter: Letter) -> str:
    """The thread: the mail it began with."""
    first = next(iter(letter.references), "") or letter.answers or letter.id
    plain = len(first) <= THREAD_CHARS and first.isascii() and first.isprintable()
    return first if plain else f"long-{hashlib.sha256(first.encode('utf-8', 'replace')).hexdigest()[:40]}"


def _said(letter: Letter) -> str:
    """The words; the subject before those that open a thread, since people say half of it there."""
    text = letter.text[:TEXT_CHARS]
    opens = not letter.references and not letter.answers
    return f"{letter.subject}\n\n{text}".strip() if opens and letter.subject else text or letter.subject


def _media(part: Part, ref: str) -> Media:
    kinds: dict[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}
    kind = kinds.get(part.mime.partition("/")[0], "file")
    name = part.name or f"attachment-{part.section}"
    return Media(kind, f"{ref}/{part.section}/{part.encoding or '7bit'}", name, part.mime, part.size)
