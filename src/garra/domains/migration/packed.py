"""Lines that OpenClaw keeps compressed (Zstandard, from 1 KiB on). Needs Python 3.14 or the package `zstandard`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from garra.core.errors import UserError

LARGEST = 8 << 20
"""Bytes of one line; the original compresses none above 4 MiB."""
REMEDY = "garra plugins install migrate"


@cache
def _unpacker() -> tuple[Callable[[bytes], Any], type[Exception]] | None:
    """What unpacks one frame, and what it raises for a damaged one."""
    try:
        zstd: Any = importlib.import_module("compression.zstd")
    except ImportError:
        try:
            package: Any = importlib.import_module("zstandard")
        except ImportError:
            return None
        return lambda data: package.ZstdDecompressor().decompress(data, max_output_size=LARGEST), package.ZstdError
    return lambda data: zstd.ZstdDecompressor().decompress(data, LARGEST), zstd.ZstdError


def can() -> bool:
    """Whether compressed lines can be read here."""
    return _unpacker() is not None


def unpacked(data: bytes) -> bytes:
    """The line. Raises UserError where nothing here can read it, or it is damaged."""
    found = _unpacker()
    if found is None:
        raise UserError(f"the transcripts are compressed; install what reads them: {REMEDY}")
    unpack, damaged = found
    try:
        return bytes(unpack(data))
    except damaged as error:
        raise UserError(f"a compressed line of a transcript is damaged: {error}") from error
