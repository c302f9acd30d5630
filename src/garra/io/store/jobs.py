"""A thread that does jobs for awaiters: whatever has gathered in one go, each job with its own outcome."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Generic, TypeVar

from garra.core.errors import Unavailable

T = TypeVar("T")
J = TypeVar("J", bound="Job")

BATCH = 512
"""Jobs done in one go at most, so that the first of them does not wait for ever."""


class Job:
    """One piece of work. As a context it keeps the error of its body, for that belongs to whoever waits."""

    __slots__ = ("error", "future", "value")

    def __init__(self) -> None:
        self.future: Future[object] = Future()
        self.value: object = None
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        self.error = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error
        return error is not None

    def settle(self) -> None:
        """Tell whoever waits, once the work is safe."""
        if not self.future.set_running_or_notify_cancel():
            return
        if self.error is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(self.error)


class Worker(Generic[J]):
    """One thread that hands gathered jobs to `run`, which must settle each and raise nothing.

    The thread starts with the first job. `end` runs in it, last.
    """

    def __init__(self, name: str, run: Callable[[list[J]], None], end: Callable[[], None]) -> None:
        self._name = name
        self._run = run
        self._end = end
        self._queue: queue.SimpleQueue[J | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, job: J) -> J:
        """Raises Unavailable once closed."""
        with self._lock:
            if self._closed:
                raise Unavailable("the store is closed: the program is shutting down")
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
                self._thread.start()
            self._queue.put(job)
        return job

    def close(self) -> None:
        """Do what is queued, then end. Blocks."""
        with self._lock:
            thread, closed, self._closed = self._thread, self._closed, True
        if thread is None:
            return
        if not closed:
            self._queue.put(None)
        thread.join()

    def _loop(self) -> None:
        going = True
        while going:
            batch, going = self._gather()
            if batch:
                self._run(batch)
        self._end()

    def _gather(self) -> tuple[list[J], bool]:
        job = self._queue.get()
        batch: list[J] = []
        while job is not None and len(batch) < BATCH:
            batch.append(job)
            if self._queue.empty():
                return batch, True
            if len(batch) < BATCH:
                job = self._queue.get()
        return batch, job is not None
