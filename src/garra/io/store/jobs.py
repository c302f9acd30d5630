"""A thread that does jobs for awaiters: whatever has gathered in one go, each job with its own outcome."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Generic, TypeVar

from garra.core.errors import Unavailable

J = TypeVar("J", bound="Job")

BATCH = 512
"""Jobs done in one go at most, so that the first of them does not wait for ever."""


class Job:
    """One piece of work. As a context it keeps the error of its body, for that belongs to whoever waits."""

    __slots__ = ("error", "future", "value", "waiting")

    def __init__(self) -> None:
        self.value: object = None
        self.error: BaseException | None = None
        self.future: asyncio.Future[object] | None = None
        self.waiting: threading.Event | None = None

    def __enter__(self) -> None:
        self.error = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error
        return error is not None

    def tell(self) -> None:
        """Give the outcome to the future; in its loop's thread."""
        if self.future is None or self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(self.error)

    def finished(self) -> None:
        """Called in the worker's thread when nobody waits for the outcome."""


def settle(jobs: Iterable[Job]) -> None:
    """Tell all who wait that their work is safe; each loop is woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        if job.future is not None:
            loops.setdefault(job.future.get_loop(), []).append(job)
        elif job.waiting is not None:
            job.waiting.set()
        else:
            job.finished()
    for loop, done in loops.items():
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it everybody who waited
            loop.call_soon_threadsafe(_tell_all, done)


def _tell_all(jobs: list[Job]) -> None:
    for job in jobs:
        job.tell()


class Worker(Generic[J]):
    """One thread that hands gathered jobs to `run`, which settles each; where it raises, all of them get the error.

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

    def submit(self, job: J) -> None:
        """Do it some time, in order. Raises Unavailable once closed."""
        with self._lock:
            if self._closed:
                raise Unavailable("the store is closed: the program is shutting down")
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
                self._thread.start()
            self._queue.put(job)

    def begin(self, job: J) -> asyncio.Future[object]:
        """Do it for the running loop; the future gets its value or error."""
        job.future = asyncio.get_running_loop().create_future()
        self.submit(job)
        return job.future

    def wait(self, job: J) -> object:
        """Do it and block until it is done. Raises its error."""
        job.waiting = threading.Event()
        self.submit(job)
        job.waiting.wait()
        if job.error is not None:
            raise job.error
        return job.value

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
            self._do(batch)
        self._end()

    def _do(self, batch: list[J]) -> None:
        """Nobody waits for ever, not even where `run` itself is at fault."""
        whole = Job()
        with whole:
            self._run(batch)
        if whole.error is not None:
            for job in batch:
                job.error = job.error or whole.error
            settle(batch)

    def _gather(self) -> tuple[list[J], bool]:
        """What is queued, at least one job; and whether more may come."""
        job = self._queue.get()
        batch: list[J] = []
        while job is not None:
            batch.append(job)
            if len(batch) == BATCH or self._queue.empty():
                return batch, True
            job = self._queue.get()
        return batch, False
