"""Server-sent events: bytes in, events out, whatever line ends and spacing the server chose."""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its `event:` field (empty when absent) and its data lines, joined by line feeds."""

    name: str
    data: bytes


def split(buffer: bytes) -> tuple[list[Event], bytes]:
    """The whole events in `buffer`, and the rest that waits for more bytes.

    Lines may end in LF, CRLF or CR; comments and unknown fields are left out, and so are events without data. A
    carriage return at the very end is kept back, for its line feed may follow.
    """
    if b"\r" not in buffer:
        text, held = buffer, b""
    else:
        held = b"\r" if buffer.endswith(b"\r") else b""
        text = buffer[: len(buffer) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    cut = text.rfind(b"\n\n")
    if cut < 0:
        return [], text + held
    return _events(text[:cut]), text[cut + 2 :] + held


def last(rest: bytes) -> list[Event]:
    """What a server that closed the connection without a blank line still said."""
    return _events(rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


def _events(text: bytes) -> list[Event]:
    blocks = text.removeprefix(_BOM).split(b"\n\n")
    return [event for block in blocks if (event := _event(block)) is not None]


def _event(block: bytes) -> Event | None:
    name, data = "", []
    for line in block.split(b"\n"):
        key, _, value = line.partition(b":")
        if key == b"data":
            data.append(value.removeprefix(b" "))
        elif key == b"event":
            name = value.strip().decode("utf-8", "replace")
    return Event(name, b"\n".join(data)) if data else None
