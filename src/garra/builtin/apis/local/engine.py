"""The one child process with its model: started when wanted, ended when idle, started anew when it died."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from garra.core.errors import Unavailable
from garra.core.value import frozen
from garra.sdk.encoding import encoded
from garra.sdk.ports import Children, Clock, Spawn, Worker

MODULE = "garra.builtin.apis.local.worker"
_GRACE_S = 3.0


@frozen
class Load:
    """Which model, how many tokens it shall see, on how many threads."""

    path: str
    context: int = 4_096
    threads: int = 1


class Engine:
    """Answers one request at a time; the others wait. After `idle_s` without one the memory is given back."""

    def __init__(self, children: Children, spawn: Spawn, clock: Clock, idle_s: float = 300.0) -> None:
        self._children = children
        self._spawn = spawn
        self._clock = clock
        self._idle_s = idle_s
        self._turn = asyncio.Lock()
        self._worker: Worker | None = None
        self._loaded: Load | None = None
        self._used_at = 0.0
        self._watched = False

    @property
    def running(self) -> bool:
        """Whether a model is held in memory."""
        return self._worker is not None

    async def chat(self, load: Load, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """The chunks of an answer.

        Raises Unavailable, with a line, when the model cannot be had or its process dies.
        """
        async with self._turn:
            worker = await self._ready(load)
            whole = False
            try:
                await worker.send(encoded({"op": "chat", "body": body}))
                while (said := await _said(worker)) is not None and "chunk" in said:
                    yield said["chunk"]
                whole = said is not None
                _complain(said)
            finally:
                await self._after(worker, whole=whole)

    async def unload(self) -> None:
        """End the child; the next call starts another."""
        worker, self._worker, self._loaded = self._worker, None, None
        if worker is not None:
            await worker.kill()

    async def _after(self, worker: Worker, *, whole: bool) -> None:
        if not whole and self._worker is worker and not await _hushed(worker):
            await self.unload()
        self._used_at = self._clock.monotonic()
        if self._worker is not None and not self._watched:
            self._watched = True
            self._spawn(self._watch(), "idle local model")

    async def _ready(self, load: Load) -> Worker:
        """The child with this model in it."""
        if self._worker is not None and self._loaded == load:
            return self._worker
        await self.unload()
        worker = await self._children.start(MODULE)
        loaded = False
        try:
            order = {"op": "load", "path": load.path, "context": load.context, "threads": load.threads}
            await worker.send(encoded(order))
            said = await _said(worker) or {"error": "its process ended while it loaded"}
            if "error" in said:
                raise Unavailable(f"{load.path} cannot be loaded: {said['error']}", details={"kind": "refused"})
            loaded = True
        finally:
            if not loaded:
                await worker.kill()
        self._worker, self._loaded = worker, load
        return worker

    async def _watch(self) -> None:
        """Give the memory back once nobody has asked for a while."""
        try:
            while self._worker is not None:
                left = self._used_at + self._idle_s - self._clock.monotonic()
                if left > 0:
                    await self._clock.sleep(left)
                elif self._turn.locked():
                    await self._clock.sleep(self._idle_s)
                else:
                    await self.unload()
        finally:
            self._watched = False


async def _said(worker: Worker) -> dict[str, Any] | None:
    """What the child says next; None when it has ended."""
    line = await worker.line()
    found: dict[str, Any] | None = msgspec.json.decode(line) if line else None
    return found


def _complain(said: dict[str, Any] | None) -> None:
    if said is None:
        line = "the local model's process ended; the next call starts it again"
        raise Unavailable(line, details={"kind": "cut"})
    if "error" in said:
        raise Unavailable(f"the local model: {said['error']}", details={"kind": "refused"})


async def _hushed(worker: Worker) -> bool:
    """Whether a child that was told to stop did so."""
    with contextlib.suppress(Unavailable, TimeoutError):
        await worker.send(b'{"op":"cancel"}')
        async with asyncio.timeout(_GRACE_S):
            while (said := await _said(worker)) is not None:
                if "chunk" not in said:
                    return True
    return False
