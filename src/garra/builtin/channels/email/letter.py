"""A mail as it is read: MIME taken apart, whatever is wrong with it. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import quopri
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from email import errors
from email.message import EmailMessage, Message
from email.parser import BytesParser
from email.policy import EmailPolicy
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any

from garra.builtin.channels.email.words import from_html, own
from garra.core.characters import mended, sound
from garra.core.outside import seen
from garra.core.value import frozen

BROKEN = (
    errors.MessageError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    AssertionError,
    RecursionError,
    NotImplementedError,
)
"""What the standard library raises for headers and bodies that are not what they say."""
_ID = re.compile(r"<([^<>\s]{1,900})>")
_BLANK = re.compile(rb"\r?\n\r?\n")
_CR = re.compile(rb"\r(?!\n)")
_MARKS = re.compile(rb"^--", re.MULTILINE)
_NESTS = re.compile(rb"boundary[^=;]{0,200}=", re.IGNORECASE)
_LINES = re.compile(rb"\n")
_BARE = re.compile(r"^[^\s<>]{1,900}$")
_PLAIN = re.compile(r'"(?:[^"\\]|\\.)*"|\((?:[^()\\]|\\.)*\)|=\?[^?\s]*\?[^?\s]*\?[^?\s]*\?=')
"""What of a From is display alone: quoted words, comments, encoded words."""
TEXT_CHARS = 200_000
"""So much of a text is looked at."""
STRANGERS_CHARS = 2_000
"""So much of a stranger's, and no HTML: there is nobody whom it is for."""
HEAD_CHARS, READ_CHARS = 16_000, 1_000
"""Of a header no more is read, of one that is taken apart (From, Content-…) less: what the standard library does with
those grows with the square of their length.
"""
LINES, PARTS, NESTED = 600_000, 250, 20
"""Lines, lines that may part its parts, and words that may say what parts them: a mail with more is read up to there.
What the standard library does with one grows with the lines times the parts that stand in each other.
"""
SMALL_PICTURE = 8 << 10
"""A picture within the text below this size is decoration."""


@frozen
class Part:
    """Something attached. `section` is its number for IMAP, `encoding` how it is packed, `size` in bytes, unpacked."""

    section: str
    encoding: str
    mime: str
    name: str
    size: int


@frozen
class Letter:
    """A mail. `senders` are all addresses of all From headers; ids are without their brackets, `id` never empty."""

    id: str
    senders: tuple[tuple[str, str], ...]
    subject: str
    text: str
    parts: tuple[Part, ...]
    references: tuple[str, ...]
    answers: str
    date_ms: int
    kind: str
    heads: tuple[tuple[str, str], ...]

    def head(self, name: str) -> str | None:
        """The first header of that name."""
        return next(iter(self.every(name)), None)

    def every(self, name: str) -> list[str]:
        return [value for key, value in self.heads if key == name]


class _Short(EmailPolicy):
    """As the standard library reads mails of today, with an end to each header."""

    def header_source_parse(self, sourcelines: Sequence[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(list(sourcelines))
        taken = name.lower().startswith(("from", "content-"))
        return name, value[: READ_CHARS if taken else HEAD_CHARS]


def read(raw: bytes, trusted: Callable[[Letter], bool] = lambda _: True) -> Letter:
    """Take a mail apart; what cannot be read is left out. Raises one of BROKEN where nothing can.

    `trusted` is asked by the headers alone, before the mail's words are looked at: a stranger's HTML is not read.
    """
    message = BytesParser(policy=_Short()).parsebytes(_straight(raw))
    known = _headed(raw, message)
    text, parts = _content(message, believed=trusted(known))
    return replace(known, text=text, parts=parts)


def _straight(raw: bytes) -> bytes:
    """The mail as the servers before us read it: only CRLF and LF end a header; not a CR alone, which the standard
    library would take for an end as well, so that a header could hide in another.
    """
    end = _BLANK.search(raw)
    stop = end.start() if end else len(raw)
    whole = _CR.sub(b" ", raw[:stop]) + raw[stop:]
    for mark, most in ((_MARKS, PARTS), (_NESTS, NESTED), (_LINES, LINES)):
        over = next(islice(mark.finditer(whole), most, None), None)
        whole = whole if over is None else whole[: over.start()]
    return whole


def _headed(raw: bytes, message: Message) -> Letter:
    """What the headers say."""
    heads = tuple((key.lower(), " ".join(str(value).split())) for key, value in message.raw_items())
    named = next((value for key, value in heads if key == "message-id"), "")
    found = _ids(named)
    return Letter(
        found[0] if found else f"none-{_digest(raw)}",
        tuple(_senders(message, heads)),
        _safe(message, "subject"),
        "",
        (),
        tuple(one for value in _all(heads, "references") for one in _ids(value)),
        next((one for value in _all(heads, "in-reply-to") for one in _ids(value)), ""),
        _date(next(iter(_all(heads, "date")), "")),
        message.get_content_type(),
        heads,
    )


def unpacked(data: bytes, encoding: str) -> bytes:
    """An attachment's bytes."""
    try:
        match encoding:
            case "base64":
                return base64.b64decode(re.sub(rb"[^A-Za-z0-9+/]", b"", data) + b"==")
            case "quoted-printable":
                return quopri.decodestring(data)
    except binascii.Error:
        return data
    return data


def _all(heads: tuple[tuple[str, str], ...], name: str) -> list[str]:
    return [value for key, value in heads if key == name]


def _ids(value: str) -> list[str]:
    """The ids in it; one with bytes that are no ASCII is known by a digest of it."""
    found = _ID.findall(value) or ([value.strip()] if _BARE.match(value.strip()) else [])
    return [one if sound(one) else f"odd-{_digest(one.encode('utf-8', 'surrogatepass'))}" for one in found]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:40]


def _safe(message: Message, name: str) -> str:
    """A header decoded; as it stands where that fails."""
    try:
        return mended(" ".join(seen(str(message.get(name) or "")).split()))
    except BROKEN:
        return ""


def _senders(message: Message, heads: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """(address, name) of each; one that can be read in two ways is told as an empty one."""
    try:
        for raw, header in zip(_all(heads, "from"), message.get_all("from") or (), strict=True):
            found = getattr(header, "addresses", ())
            grouped = any(group.display_name for group in getattr(header, "groups", ()))
            if not found or grouped or _PLAIN.sub("", raw).count("@") != len(found):
                yield "", ""
            for one in found:
                yield (one.addr_spec if one.username and one.domain else ""), one.display_name
    except BROKEN:
        yield "", ""


def _date(value: str) -> int:
    try:
        return int(parsedate_to_datetime(value).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0


def _content(message: Message, *, believed: bool) -> tuple[str, tuple[Part, ...]]:
    try:
        body = message.get_body(("plain", "html")) if isinstance(message, EmailMessage) else None
    except BROKEN:
        body = None
    text = _words(body, believed=believed) if body is not None else ""
    return text, tuple(_attached(message, body))


def _words(body: Any, *, believed: bool) -> str:
    html = body.get_content_type() == "text/html"
    if not believed:
        return "" if html else own(decoded(body)[:STRANGERS_CHARS])
    text = decoded(body)[:TEXT_CHARS]
    return mended(own(seen(from_html(text) if html else text)))


def decoded(part: Any) -> str:
    """A text part; a charset that nobody knows, or that is not the one it is in, costs letters and no more."""
    try:
        data = part.get_payload(decode=True) or b""
    except BROKEN:
        return ""
    named = str(part.get_content_charset() or "utf-8")
    for charset in (named, "utf-8", "latin-1"):
        try:
            return bytes(data).decode(charset).replace("\x00", "")
        except (LookupError, ValueError):
            continue
    return ""


def _attached(message: Message, body: Any) -> Iterator[Part]:
    texts = {id(body)}
    for section, part in _numbered(message, "", depth=0):
        kind = part.get_content_type()
        if id(part) in texts or kind == "application/pgp-signature":
            continue
        name, attached = _name(part), part.get_content_disposition() == "attachment"
        if kind in {"text/plain", "text/html"} and not name and not attached:
            continue  # another form of the body
        size = len(_payload(part))
        if part.get("content-id") and not attached and size < SMALL_PICTURE:
            continue
        packed = str(part.get("content-transfer-encoding") or "").strip().lower()
        yield Part(section, packed, kind, name, size)


def _numbered(part: Message, section: str, *, depth: int) -> Iterator[tuple[str, Message]]:
    """The leaves with their numbers as IMAP has them. A mail within a mail is one leaf."""
    if depth > 20:
        return
    if not part.is_multipart() or part.get_content_type() == "message/rfc822":
        yield section or "1", part
        return
    children = part.get_payload()
    for at, child in enumerate(children if isinstance(children, list) else (), 1):
        yield from _numbered(child, f"{section}.{at}" if section else str(at), depth=depth + 1)


def _name(part: Message) -> str:
    try:
        return mended(seen(str(part.get_filename() or "")))
    except BROKEN:
        return ""


def _payload(part: Message) -> bytes:
    try:
        if part.is_multipart():
            return part.as_bytes()
        return bytes(part.get_payload(decode=True) or b"")
    except BROKEN:
        return b""
