"""`garra sessions compact`: sum a conversation up, or show its model the end of it only. The gateway does it."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from garra.client import quick
from garra.core.errors import Unavailable
from garra.faces.cli import output
from garra.faces.cli.place import Place
from garra.faces.cli.sessions_place import key_of

Step = Callable[[argparse.Namespace, Place], Awaitable[int]]
Add = Callable[[str, Step, str], argparse.ArgumentParser]


def add(step: Add) -> None:
    """The command of this module, made by `step`."""
    compact = step("compact", _compact, "sum a conversation up, so that its model reads less of it")
    compact.add_argument("key", nargs="?", default="main", help="its key, or the end of it (main)")
    compact.add_argument("--agent", default="main", metavar="ID", help="whose, where the key does not say (main)")
    compact.add_argument(
        "--max-lines", type=int, default=None, metavar="N", help="no summary: the model is shown the last N messages"
    )
    compact.add_argument("--timeout", type=int, default=None, metavar="MS", help="how long to wait (until it is done)")


async def _compact(asked: argparse.Namespace, place: Place) -> int:
    if await asyncio.to_thread(lambda: place.holder) is None:
        raise Unavailable("no gateway is running to sum it up: start it with `garra gateway`")
    params: dict[str, Any] = {"key": key_of(place, asked.key, asked.agent)}
    if asked.max_lines is not None:
        params["maxLines"] = asked.max_lines
    limit = None if asked.timeout is None else asked.timeout / 1000
    done: dict[str, Any] = await asyncio.to_thread(
        lambda: quick.call(place.target(), "sessions.compact", params, scopes=("operator.admin",), timeout_s=limit)
    )
    if asked.json:
        output.say_json(done)
    elif "kept" in done:
        output.say(f"{done['key']}: the model is shown the last {done['kept']} messages")
    else:
        result = done["result"]
        output.say(f"{done['key']}: about {result['tokensBefore']:,} tokens are {result['tokensAfter']:,} now")
    return 0
