"""What a picture is, told from its bytes alone, and whether a model can be sent it as it is."""

from __future__ import annotations

import base64
from typing import Final

from garra.core.messages import Image
from garra.core.value import frozen

LARGEST: Final = 5 << 20
"""Bytes; model services refuse larger ones."""
PIXELS: Final = 100_000_000
SIDE: Final = 16_000


HARD_SIDE: Final = 8_000
"""Points a side that the strictest of the large services takes."""
HARD_TEXT: Final = 5 << 20
"""Characters of base64 that it takes."""


@frozen
class Picture:
    mime: str
    width: int
    height: int


def read(data: bytes) -> Picture:
    """Raises ValueError for what is no picture that models take, or claims to be huge."""
    found = _png(data) or _gif(data) or _webp(data) or _jpeg(data)
    if found is None:
        raise ValueError("no PNG, JPEG, GIF or WebP picture")
    if not (0 < found.width <= SIDE and 0 < found.height <= SIDE) or found.width * found.height > PIXELS:
        raise ValueError(f"a picture of {found.width} × {found.height} points; at most {SIDE} a side")
    return found


def large(found: Picture, text: int, side: int) -> bool:
    """Whether a picture of `text` characters of base64 is made smaller before a model gets it. `side`: how many points
    a side it may have, 0 for as many as services take.
    """
    return max(found.width, found.height) > (side or HARD_SIDE) or text > HARD_TEXT


def hopeless(found: Picture, text: int) -> bool:
    """Whether services refuse it, and with it the whole request."""
    return max(found.width, found.height) > HARD_SIDE or text > HARD_TEXT


def image(data: bytes, mime: str) -> Image:
    return Image(mime, base64.b64encode(data).decode())


def _png(data: bytes) -> Picture | None:
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR" or len(data) < 24:
        return None
    return Picture("image/png", int.from_bytes(data[16:20]), int.from_bytes(data[20:24]))


def _gif(data: bytes) -> Picture | None:
    if data[:6] not in (b"GIF87a", b"GIF89a") or len(data) < 10:
        return None
    return Picture("image/gif", int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little"))


def _webp(data: bytes) -> Picture | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return None
    match data[12:16]:
        case b"VP8X":
            return Picture("image/webp", 1 + _small(data, 24, 3), 1 + _small(data, 27, 3))
        case b"VP8 ":
            return Picture("image/webp", _small(data, 26, 2) & 0x3FFF, _small(data, 28, 2) & 0x3FFF)
        case b"VP8L":
            bits = _small(data, 21, 4)
            return Picture("image/webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
        case _:
            return None


def _small(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _jpeg(data: bytes) -> Picture | None:
    if data[:3] != b"\xff\xd8\xff":
        return None
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        kind, size = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            return Picture("image/jpeg", int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7]))
        at += 1 if kind == 0xFF else 2 + max(size, 2)
    return None
