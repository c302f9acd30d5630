"""One short program, run to its end by whoever may wait for it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from garra.io.process.door import Finished, Programs, Start


def once(start: Start, *, given: bytes = b"", timeout_s: float, limit: int) -> Finished:
    """As `Programs.run`. Blocks, also where a loop runs in this thread: never call it on one.

    Raises Unavailable when it cannot be started.
    """

    async def run() -> Finished:
        programs = Programs()
        try:
            return await programs.run(start, given=given, timeout_s=timeout_s, limit=limit)
        finally:
            await programs.close()

    with ThreadPoolExecutor(1, thread_name_prefix="short") as thread:
        return thread.submit(asyncio.run, run()).result()
