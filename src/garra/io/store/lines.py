"""Append-only files of lines: what was acknowledged is on the disk, and a file never ends in half a line.

Appends that gather while one is being synced share the next sync. A write that fails leaves the file as it was.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from garra.core.errors import Conflict, GarraError, NotFound, Unavailable
from garra.io.files import atomic
from garra.io.store.jobs import Job, Worker, settle

THREADS = 4
"""How many files are synced at the same time at most."""

OPEN_FILES = 64
"""File descriptors that each thread keeps open for the next append."""

_WORDS = {
    errno.ENOSPC: "the disk is full: free some space, then try again",
    errno.EDQUOT: "the disk quota is used up: free some space, then try again",
    errno.EROFS: "the file system is read only",
    errno.EACCES: "its rights do not allow it",
    errno.EPERM: "its rights do not allow it",
    errno.ELOOP: "it is a symbolic link",
    errno.EMFILE: "too many files are open",
}


class _Append(Job):
    __slots__ = ("data", "path")

    def __init__(self, path: Path, data: bytes) -> None:
        super().__init__()
        self.path = path
        self.data = data


class _Call(Job):
    """Something else that must not happen between a write and its sync."""

    __slots__ = ("path", "work")

    def __init__(self, path: Path, work: Callable[[], object]) -> None:
        super().__init__()
        self.path = path
        self.work = work


class Lines:
    """Writes lines to any number of files. Each file belongs to one of a few threads, so that syncs go in parallel."""

    def __init__(self) -> None:
        self._desks = tuple(_Desk(f"garra-lines-{number}") for number in range(THREADS))

    async def append(self, path: Path, lines: Sequence[bytes]) -> None:
        """Add `lines` (without line breaks) to the end and return when they are on the disk.

        Makes the file and its folder. Raises Unavailable when they could not be written; then none is.
        """
        await self.post(path, lines)

    def post(self, path: Path, lines: Sequence[bytes]) -> asyncio.Future[object]:
        """`append`, begun; the future ends when the lines are on the disk, and is not to be cancelled."""
        return self._desk(path).worker.begin(_Append(path, _text(lines)))

    async def create(self, path: Path, lines: Sequence[bytes]) -> None:
        """Like `append` to a new file. Raises Conflict when there is one already."""
        data, desk = _text(lines), self._desk(path)
        await desk.worker.begin(_Call(path, lambda: desk.create(path, data)))

    async def load(self, path: Path) -> bytes:
        """The whole file. A torn last line is cut off, from the file too. Raises NotFound or Unavailable.

        What is read is on the disk, also what a process wrote that died before its sync: more may follow from it.
        """
        desk = self._desk(path)
        return cast(bytes, await desk.worker.begin(_Call(path, lambda: desk.load(path))))

    async def rename(self, path: Path, to: Path) -> None:
        """Move the file away; later appends to `path` start a new one. Raises NotFound or Unavailable."""
        desk = self._desk(path)
        await desk.worker.begin(_Call(path, lambda: desk.rename(path, to)))

    async def close(self) -> None:
        """Finish what is queued and close every file."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        for desk in self._desks:
            desk.worker.close()

    def _desk(self, path: Path) -> _Desk:
        return self._desks[hash(path) % THREADS]


def _text(lines: Sequence[bytes]) -> bytes:
    if any(b"\n" in line for line in lines):
        raise ValueError("a line must not hold a line break")
    return b"".join(line + b"\n" for line in lines)


class _Desk:
    """One thread and the files it has open. All but `worker` is that thread's own."""

    def __init__(self, name: str) -> None:
        self.worker: Worker[_Append | _Call] = Worker(name, self._run, self._close_all)
        self._open: OrderedDict[Path, int] = OrderedDict()

    def _run(self, jobs: list[_Append | _Call]) -> None:
        """Write all, in order; sync each written file once; only then tell anyone."""
        written: dict[Path, list[_Append]] = {}
        for job in jobs:
            if isinstance(job, _Call):
                self._sync(job.path, written.pop(job.path, []))
                self._call(job)
            elif self._write(job):
                written.setdefault(job.path, []).append(job)
        for path, appends in written.items():
            self._sync(path, appends)
        while len(self._open) > OPEN_FILES:
            os.close(self._open.popitem(last=False)[1])

    def _call(self, job: _Call) -> None:
        with job:
            job.value = job.work()
        if isinstance(job.error, OSError):
            job.error = explained(job.error, job.path)
        settle([job])

    def _write(self, job: _Append) -> bool:
        try:
            write_whole(self._descriptor(job.path), job.data)
        except OSError as error:
            job.error = explained(error, job.path)
            settle([job])
            return False
        return True

    def _sync(self, path: Path, appends: list[_Append]) -> None:
        if not appends:
            return
        fault: GarraError | None = None
        try:
            os.fdatasync(self._descriptor(path))
        except OSError as error:
            self._drop(path)
            fault = explained(error, path)
        for job in appends:
            job.error = fault
        settle(appends)

    def _descriptor(self, path: Path, *, make: bool = True) -> int:
        found = self._open.get(path)
        if found is not None and os.fstat(found).st_nlink:
            self._open.move_to_end(path)
            return found
        self._drop(path)
        new = make and not path.exists()
        if new:
            atomic.folder(path.parent)
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if new else 0)
        opened = os.open(path, flags, 0o600)
        mend(opened)
        if new:
            sync_folder(path.parent)
        self._open[path] = opened
        return opened

    def _drop(self, path: Path) -> None:
        if (opened := self._open.pop(path, None)) is not None:
            os.close(opened)

    def create(self, path: Path, data: bytes) -> None:
        atomic.folder(path.parent)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        opened = self._open[path] = os.open(path, flags, 0o600)
        try:
            write_whole(opened, data)
            os.fdatasync(opened)
        except OSError:
            self._drop(path)
            path.unlink()
            raise
        sync_folder(path.parent)

    def load(self, path: Path) -> bytes:
        try:
            opened = self._descriptor(path, make=False)
            mend(opened)
            os.fdatasync(opened)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
        return read(path)

    def rename(self, path: Path, to: Path) -> None:
        self._drop(path)
        path.rename(to)
        sync_folder(path.parent)

    def _close_all(self) -> None:
        for opened in self._open.values():
            os.close(opened)
        self._open.clear()


def write_whole(opened: int, data: bytes) -> None:
    """Write all of `data` or, when that fails, leave the file as long as it was. Raises OSError."""
    size = os.fstat(opened).st_size
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(opened, rest) :]
    except OSError:
        os.ftruncate(opened, size)
        raise


def mend(opened: int) -> int:
    """Cut what follows the last line break: a line whose writer died. Gives back how many bytes."""
    size = os.fstat(opened).st_size
    end = size
    while end > 0:
        start = max(0, end - 65_536)
        at = os.pread(opened, end - start, start).rfind(b"\n")
        if at >= 0:
            end = start + at + 1
            break
        end = start
    if end < size:
        os.ftruncate(opened, end)
        os.fdatasync(opened)
    return size - end


def read(path: Path) -> bytes:
    """The whole lines of a file that somebody else may be writing. Blocks; raises OSError."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as file:
        data = file.read()
    return data if data.endswith(b"\n") else data[: data.rfind(b"\n") + 1]


def sync_folder(folder: Path) -> None:
    """Make a new or renamed file's name survive a power cut."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def explained(error: OSError, path: Path) -> GarraError:
    """An operating system's fault as a line that says what to do."""
    if error.errno == errno.ENOENT:
        return NotFound(f"{path} does not exist")
    if error.errno == errno.EEXIST:
        return Conflict(f"{path} exists already")
    words = _WORDS.get(error.errno or 0, error.strerror or str(error))
    return Unavailable(f"cannot write {path}: {words}", details={"errno": error.errno}, retryable=True)
