"""`logs.tail`: the newest lines of the log."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from msgspec import Meta

from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.params import Index, Params
from garra.io import log


class LogsTail(Params, frozen=True):
    """With the `cursor` of the answer before, only what came since."""

    cursor: Index | None = None
    limit: Annotated[int, Meta(ge=1, le=5000)] = 500
    max_bytes: Annotated[int, Meta(ge=1, le=1_000_000)] = 250_000


async def tail(host: Host, caller: Caller, params: LogsTail) -> dict[str, Any]:
    own = host.config.logging.file
    file = host.paths.expand(own) if own else None
    found = await asyncio.to_thread(log.tail, host.paths, params.cursor, params.limit, file)
    lines, room = [], params.max_bytes
    for line in reversed(found.lines):
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    lines.reverse()
    return {
        "file": found.file or str(host.paths.logs),
        "cursor": found.cursor,
        "size": found.size,
        "lines": lines,
        "truncated": found.cut or len(lines) < len(found.lines),
        "reset": found.reset,
    }


METHODS: tuple[Method, ...] = (Method("logs.tail", READ, LogsTail, tail),)
