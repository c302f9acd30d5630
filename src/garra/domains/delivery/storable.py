"""Any event of any platform as one that can be stored: what comes in is written by strangers, and none of it may stop
what comes after it. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import msgspec

from garra.core.characters import certain, keyed, mended
from garra.core.value import frozen
from garra.domains.delivery.store import packed
from garra.sdk.channel import Address, Ignored, Inbound, Media, Sender

RAW_BYTES = 64 << 10
"""A platform's own event is kept up to this size."""

UNSTORABLE: Final = "unstorable"
"""Why an event is ignored of which nothing can be kept."""

MOST: Final = 1 << 53
"""No number of an event is larger: more is not exact in JSON."""

BROKEN: Final = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    msgspec.MsgspecError,
)
"""What an event can raise that is not what its type says."""


@frozen
class Stored:
    """The event as it is kept, and its JSON."""

    event: Inbound | Ignored
    body: str


def storable(event: Inbound | Ignored) -> Stored:
    """It raises for nothing. What is sound is kept as it is; words are mended; ids that would change by that stay apart
    from all others, and nobody is known by one.
    """
    try:
        slim = replace(event, raw=_raw(event.raw))
        if body := _sound(slim):
            return Stored(slim, body)
        mend = _inbound(slim) if isinstance(slim, Inbound) else _ignored(slim)
        body = packed(mend)
        decoded(body)
    except BROKEN:
        mend = Ignored(keyed(_text(event.id)), None, UNSTORABLE)
        body = packed(mend)
    return Stored(mend, body)


def decoded(body: str) -> Inbound | Ignored:
    """The event in a stored row. Raises msgspec.MsgspecError."""
    kind: type[Inbound | Ignored] = Inbound if "event" in _EVENT.decode(body) else Ignored
    return msgspec.json.decode(body, type=kind)


_EVENT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _raw(raw: Any) -> Any:
    """The platform's own event, where it is not too large and can be written at all."""
    if raw is None:
        return None
    try:
        text = packed(raw)
        return raw if len(text) <= RAW_BYTES and "\\u0000" not in text and text.encode() else None
    except BROKEN:
        return None


def _sound(event: Inbound | Ignored) -> str:
    """Its JSON, where that is the event to the letter; empty where it has to be mended."""
    try:
        body = msgspec.json.encode(event, enc_hook=str).decode()
    except UnicodeEncodeError:
        return ""
    exact = "\\u0000" not in body and (isinstance(event, Ignored) or _plain(event))
    return body if exact and decoded(body) is not None else ""


def _plain(event: Inbound) -> bool:
    return (
        all(certain(name) for name in (event.sender.id, event.address.chat))
        and 0 <= event.timestamp <= MOST
        and not any(_odd(one) for one in event.media)
    )


def _odd(one: Media) -> bool:
    return not (0 <= (one.size or 0) <= MOST and 0 <= (one.seconds or 0) <= MOST)


def _inbound(event: Inbound) -> Inbound:
    place = event.address
    named = (place.chat, place.thread, place.parent, place.guild, place.team, *place.roles)
    known = certain(event.sender.id) and all(certain(name) for name in named)
    return replace(
        event,
        id=keyed(event.id),
        address=_address(place),
        sender=Sender(
            event.sender.id if known else "",
            mended(event.sender.name),
            mended(event.sender.handle),
            event.sender.is_bot,
        ),
        text=mended(event.text),
        timestamp=event.timestamp if 0 <= event.timestamp <= MOST else 0,
        data=event.data if certain(event.data) else "",
        reply_to=keyed(event.reply_to),
        reply_text=mended(event.reply_text),
        media=tuple(_media(one) for one in event.media),
    )


def _ignored(event: Ignored) -> Ignored:
    return Ignored(keyed(event.id), event.address and _address(event.address), mended(event.reason), event.raw)


def _address(place: Address) -> Address:
    return replace(
        place,
        chat=keyed(place.chat),
        thread=keyed(place.thread),
        parent=keyed(place.parent),
        guild=keyed(place.guild),
        team=keyed(place.team),
        roles=tuple(keyed(role) for role in place.roles),
    )


def _media(one: Media) -> Media:
    size = one.size if one.size is not None and 0 <= one.size <= MOST else None
    seconds = one.seconds if one.seconds is not None and 0 <= one.seconds <= MOST else None
    return Media(one.kind, keyed(one.ref), mended(one.name), mended(one.mime), size, seconds)


def _text(name: Any) -> str:
    return name if isinstance(name, str) else repr(name)[:200]
