"""JSON for the wire."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from garra.core.characters import plain

DEEPEST = 128
"""Lists and objects stand in each other at most so deep; what is deeper is left out."""

_SIGNS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def encoded(value: Any) -> bytes:
    """`value` as compact JSON. Half a surrogate pair, which no server takes, becomes a question mark."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def parsed(data: bytes | str) -> Any:
    """What a platform wrote, None where it is no JSON at all.

    A platform passes on what its users write, so one text must not cost all that came with it: halves of characters and
    bytes that are no UTF-8 become U+FFFD, bare control characters stay, and what is nested without end is cut off.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raw = data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)
    try:
        return plain(json.loads(_shallow(raw).decode("utf-8", "replace"), strict=False))
    except (ValueError, RecursionError):
        return None


def _shallow(raw: bytes) -> bytes:
    """JSON without what stands too deep: null is there instead."""
    kept, depth, start = [], 0, 0
    for sign in _SIGNS.finditer(raw):
        if sign[0] in b"[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept.append(raw[start : sign.start()] + b"null")
        elif sign[0] in b"]}":
            depth -= 1
            if depth == DEEPEST:
                start = sign.end()
    return b"".join(kept) + raw[start:] if depth <= DEEPEST else raw
