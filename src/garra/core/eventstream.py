"""Amazon's event stream (`application/vnd.amazon.eventstream`): bytes in, events out.

A frame is: its length and that of its headers (four bytes each), a checksum of both, the headers, the payload, a
checksum of all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import crc32

from garra.core.sse import Event

LARGEST = 24 << 20
"""Bytes of a frame; Amazon's are 16 MiB at most."""

_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_TEXTS = (6, 7)
BROKEN = "!broken"
"""The name of the event that tells of bytes that are no frame; nothing more can be read after it."""


def split(buffer: bytes) -> tuple[list[Event], bytes]:
    """The whole events in `buffer`, and the rest that waits for more bytes.

    An event is called after its `:event-type`; an exception after its `:exception-type` or `:error-code` with `!`
    before it.
    """
    events: list[Event] = []
    while len(buffer) >= 12:
        total, head, check = struct.unpack_from(">III", buffer)
        if crc32(buffer[:8]) != check or not 16 + head <= total <= LARGEST:
            return [*events, Event(BROKEN, b"{}")], b""
        if len(buffer) < total:
            break
        frame, buffer = buffer[:total], buffer[total:]
        if crc32(frame[:-4]) != struct.unpack(">I", frame[-4:])[0]:
            return [*events, Event(BROKEN, b"{}")], b""
        events.append(Event(_name(dict(_headers(frame[12 : 12 + head]))), frame[12 + head : -4]))
    return events, buffer


def _name(headers: dict[str, str]) -> str:
    fault = headers.get(":exception-type") or headers.get(":error-code")
    return f"!{fault}" if fault else headers.get(":event-type", "")


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    """The headers that are text; others are passed over. What is cut off ends them."""
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        name, kind = data[at + 1 : name_end].decode("utf-8", "replace"), data[name_end : name_end + 1]
        at = name_end + 1
        if kind and kind[0] in _TEXTS:
            size = int.from_bytes(data[at : at + 2])
            yield name, data[at + 2 : at + 2 + size].decode("utf-8", "replace")
            at += 2 + size
        else:
            at += _SIZES.get(kind[0], len(data)) if kind else len(data)
