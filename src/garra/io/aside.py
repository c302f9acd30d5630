"""Work that may take long and nobody waits for: one thread beside the loop, which ends with the process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Aside:
    """`put` work that raises nothing; each piece runs when those before it are done. `close` waits a while for them."""

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def close(self, wait_s: float) -> None:
        self._work.put(None)
        self._thread.join(wait_s)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
