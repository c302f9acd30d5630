"""The child that holds vectors, as the gateway sees it: started when it is wanted, ended when nobody asks."""

from __future__ import annotations

import array
import asyncio
import base64
import json
import logging
import math
from collections.abc import Sequence
from typing import Any, Final

from garra.core.errors import GarraError, Unavailable
from garra.core.value import frozen
from garra.sdk.ports import Children, Spawn, Worker

log = logging.getLogger(__name__)

MODULE: Final = "garra.domains.memory.child"


@frozen
class Near:
    """What is looked for: `text`, or its `vector` (32-bit floats) where another made it."""

    text: str
    owners: tuple[str, ...]
    sources: tuple[str, ...]
    limit: int
    vector: bytes = b""


class Vectors:
    """One child for one index. Every question raises Unavailable where it cannot be answered."""

    def __init__(self, children: Children, spawn: Spawn, index: str, model: str) -> None:
        self._children, self._spawn = children, spawn
        self._index, self.model = index, model
        self._worker: Worker | None = None
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._starting = asyncio.Lock()
        self._number = 0
        self.busy = False

    @property
    def alive(self) -> bool:
        return self._worker is not None

    async def work(self) -> None:
        """Make the vectors that are missing, in the background."""
        worker = await self._started()
        self.busy = True
        await worker.send(b'{"op": "work"}')

    async def near(self, asked: Near) -> list[tuple[int, float]]:
        """Rows with their cosines, the nearest first."""
        body: dict[str, Any] = {"op": "near", "owners": asked.owners, "sources": asked.sources, "limit": asked.limit}
        body |= {"vector": base64.b64encode(asked.vector).decode()} if asked.vector else {"text": asked.text}
        answer = await self._ask(body)
        return [(int(row), float(score)) for row, score in answer["near"]]

    async def sync(self, places: Any, cut: Any, *, force: bool) -> dict[str, Any]:
        """`sync.sync` in the child: much text is read without holding up anybody."""
        answer = await self._ask({"op": "sync", "places": places, "cut": cut, "force": force})
        done: dict[str, Any] = answer["done"]
        return done

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        self.busy = False
        if worker is not None:
            await worker.kill()
        self._fail("memory was closed")

    async def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        worker = await self._started()
        self._number += 1
        number = self._number
        waits = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await worker.send(json.dumps({**body, "id": number}, ensure_ascii=False).encode())
            answer: dict[str, Any] = await waits
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            raise Unavailable(f"vectors: {answer['error']}")
        return answer

    async def _started(self) -> Worker:
        async with self._starting:
            if self._worker is None:
                worker = await self._children.start(MODULE)
                opening = {"op": "open", "db": self._index, "model": self.model}
                await worker.send(json.dumps(opening).encode())
                self._worker = worker
                self._spawn(self._listen(worker), "memory's vectors")
            return self._worker

    async def _listen(self, worker: Worker) -> None:
        try:
            while line := await worker.line():
                self._heard(json.loads(line))
        except (GarraError, OSError, ValueError, EOFError) as fault:
            log.info("the child of memory ended: %s", fault)
        if self._worker is worker:
            self._worker = None
            self.busy = False
            self._fail("the program that compares vectors ended")

    def _heard(self, said: dict[str, Any]) -> None:
        if "left" in said:
            self.busy = bool(said["left"])
        waits = self._waiting.get(said.get("id") or 0)
        if waits is not None and not waits.done():
            waits.set_result(said)
        elif "error" in said:
            self.busy = False
            log.warning("memory is searched by words alone: %s", said["error"])

    def _fail(self, why: str) -> None:
        for waits in self._waiting.values():
            if not waits.done():
                waits.set_exception(Unavailable(why, retryable=True))


def floats(values: Sequence[float]) -> bytes:
    """A vector as it is stored."""

    length = math.sqrt(sum(value * value for value in values)) or 1.0
    found = array.array("f", (value / length for value in values))
    return found.tobytes()
