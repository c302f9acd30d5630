"""What a picture is, by its bytes, and whether it is too large for models."""

from __future__ import annotations

import struct
import zlib

import pytest

from garra.core.pictures import HARD_TEXT, Picture, hopeless, image, large, read


def png(width: int, height: int) -> bytes:
    """A picture's beginning that says it is so large."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))


def test_a_picture_is_what_its_bytes_are() -> None:
    assert read(png(640, 480)).width == 640
    jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x20\0\x10\x03" + b"\0" * 20
    assert (read(jpeg).width, read(jpeg).height) == (16, 32)
    assert read(b"GIF89a\x05\0\x06\0" + b"\0" * 20).height == 6
    assert read(b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + b"\x07\0\0\x08\0\0").width == 8
    assert read(b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 10 + b"\x05\0\x06\0").height == 6
    assert read(b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x04\x40\x01\0" + b"\0" * 8).width == 5
    for bad in (
        b"",
        b"<svg/>",
        png(60_000, 60_000),
        png(0, 1),
        b"\xff\xd8\xff\xff\xff",
        b"RIFF\0\0\0\0WEBPXXXX" + b"\0" * 20,
    ):
        with pytest.raises(ValueError, match="picture"):
            read(bad)


def test_a_jpeg_may_have_blocks_and_filling_before_its_size() -> None:
    frame = b"\xff\xc2\0\x11\x08\0\x20\0\x10\x03" + b"\0" * 20
    tables = b"\xff\xc4\0\x03a"
    assert read(b"\xff\xd8" + tables + b"\xff" + frame).width == 16


@pytest.mark.parametrize(
    ("width", "height", "text", "side", "too_large", "refused"),
    [
        (1_200, 900, 1_000, 1_200, False, False),
        (1_201, 900, 1_000, 1_200, True, False),
        (4_000, 900, 1_000, 0, False, False),
        (900, 8_001, 1_000, 0, True, True),
        (900, 900, HARD_TEXT + 1, 0, True, True),
    ],
)
def test_over_its_limit_it_is_made_smaller_and_over_the_services_limit_it_is_not_sent(
    width: int, height: int, text: int, side: int, *, too_large: bool, refused: bool
) -> None:
    found = Picture("image/png", width, height)
    assert large(found, text, side) is too_large
    assert hopeless(found, text) is refused


def test_it_goes_to_models_as_base64() -> None:
    assert image(b"hi", "image/png").data == "aGk="
