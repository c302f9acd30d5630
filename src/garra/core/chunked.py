"""Where a chunked body of HTTP ends: its bytes are counted as they pass, and nothing of it is kept."""

from __future__ import annotations

import re
from typing import Final, Literal

from garra.core.value import frozen

LINE: Final = 4_096
"""The longest line of a size or behind the last chunk, and all lines of the latter together."""
_SIZE: Final = rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n"

Where = Literal["size", "data", "gap", "trailer", "over", "wrong"]


@frozen
class Chunked:
    """How far it is. `left` bytes of a chunk, or of what may follow the last one, are to come; `line` has begun."""

    where: Where = "size"
    left: int = 0
    line: bytes = b""


def passed(body: Chunked, data: bytes) -> tuple[Chunked, int]:
    """What `data` makes of it, and how many bytes of `data` are the body's: fewer than all where it is over, or is
    no chunked body at all.
    """
    at = 0
    while at < len(data) and body.where not in ("over", "wrong"):
        if body.where == "data":
            here = min(body.left, len(data) - at)
            at += here
            body = Chunked("data", body.left - here) if here < body.left else Chunked("gap")
            continue
        end = data.find(b"\n", at, at + LINE + 1) + 1
        line = body.line + data[at : end or len(data)]
        if not end and len(line) <= LINE:
            return Chunked(body.where, body.left, line), len(data)
        body = _after(body, line)
        at = end if body.where != "wrong" else at
    return body, at


def _after(body: Chunked, line: bytes) -> Chunked:
    """Behind a whole line, or one that is too long."""
    if not line.endswith(b"\r\n") or len(line) > LINE:
        return Chunked("wrong")
    if body.where == "gap":
        return Chunked("size") if line == b"\r\n" else Chunked("wrong")
    if body.where == "trailer":
        left = body.left - len(line)
        return Chunked("over") if line == b"\r\n" else Chunked("trailer", left) if left > 0 else Chunked("wrong")
    found = re.fullmatch(_SIZE, line)
    if found is None:
        return Chunked("wrong")
    size = int(found[1], 16)
    return Chunked("data", size) if size else Chunked("trailer", LINE)
