"""A disk that forgets what was not synced, and the doors of one process to it: its database and its transcripts."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

import garra.io.store.db
from garra.core.errors import Conflict, NotFound, Unavailable
from garra.io.store.db import Connection, Database, explained, statements
from garra.io.store.lines import Lines
from garra.sdk.ports import Clock
from tests.simulation.life import Life

T = TypeVar("T")

SLOWEST_S = 0.5
"""How long a slow disk takes at most for one step."""


def blank() -> bytes:
    """An empty database with every migration gone."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for step in sorted((Path(garra.io.store.db.__file__).parent / "migrations").glob("*.sql")):
        for statement in statements(step.read_text()):
            connection.execute(statement)
    data = connection.serialize()
    connection.close()
    return data


@dataclass
class File:
    """`synced` bytes of `data` survive a power cut surely, more of it perhaps."""

    data: bytes = b""
    synced: int = 0


@dataclass
class Disk:
    """What is written, and what of it would survive a power cut: `safe` of the database, and the synced part of each
    file. `slow` and `full` are chances from 0 to 1.
    """

    image: bytes
    safe: bytes
    random: Random
    clock: Clock
    slow: float = 0.0
    full: float = 0.0
    files: dict[Path, File] = field(default_factory=dict)
    healed: bool = False

    async def step(self, life: Life) -> None:
        """Between two steps of a write: it takes its time, and a process may die here."""
        life.go_on()
        slow = not self.healed and self.random.random() < self.slow
        await self.clock.sleep(self.random.random() * SLOWEST_S if slow else 0)
        life.go_on()

    def refuses(self) -> bool:
        return not self.healed and self.random.random() < self.full

    def lose(self) -> None:
        """The power is cut: of what was not synced, some is there and the rest is not."""
        for path, file in list(self.files.items()):
            kept = file.synced + self.random.randrange(len(file.data) - file.synced + 1)
            if kept == 0:
                del self.files[path]
            else:
                file.data, file.synced = file.data[:kept], kept


class Store(Database):
    """One process's database: as `io.store.db.Database`, one write at a time, gone with its process.

    A commit with `durable` syncs all before it; what only a dead process committed may still be lost.
    """

    def __init__(self, disk: Disk, life: Life, *, cuts: bool) -> None:
        self._disk, self._life, self._cuts = disk, life, cuts
        self._db = sqlite3.connect(":memory:", isolation_level=None)
        self._db.deserialize(disk.image)
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """It is open."""

    async def write(self, work: Callable[[Connection], T], *, durable: bool = False) -> T:
        async with self._turn:
            await self._disk.step(self._life)
            if self._disk.refuses():
                raise Unavailable("the disk is full", retryable=True)
            value = self._done(work)
            if durable and self._cuts:
                self._disk.safe = self._db.serialize()
        await self._disk.step(self._life)
        return value

    async def read(self, work: Callable[[Connection], T]) -> T:
        await self._disk.step(self._life)
        return work(self._db)

    def post(self, work: Callable[[Connection], None], settled: Callable[[BaseException | None], None]) -> None:
        async def later() -> None:
            try:
                await self.write(work)
            except Unavailable as error:
                settled(error)
            else:
                settled(None)

        self._life.spawn(later(), "posted write")

    def read_now(self, work: Callable[[Connection], T]) -> T:
        """Only the mirror of the registry for other programs is made this way, and nobody reads it here."""
        raise Unavailable("no mirror is kept")

    def _done(self, work: Callable[[Connection], T]) -> T:
        connection = self._db
        connection.execute("BEGIN")
        try:
            value = work(connection)
        except sqlite3.Error as error:
            connection.execute("ROLLBACK")
            raise explained(error, Path("sim")) from error
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        return value

    def end(self, *, power_cut: bool) -> None:
        """The process is dead; with a power cut only what was synced is left."""
        self._disk.image = self._disk.safe if power_cut else self._db.serialize()
        self._db.close()


class Files(Lines):
    """One process's transcripts: as `io.store.lines.Lines`. What `append` has returned survives a power cut."""

    def __init__(self, disk: Disk, life: Life) -> None:
        self._disk, self._life = disk, life
        self._turn = asyncio.Lock()

    def post(self, path: Path, lines: Sequence[bytes]) -> asyncio.Future[object]:
        data = b"".join(line + b"\n" for line in lines)
        return self._begin(lambda: self._append(path, data))

    async def create(self, path: Path, lines: Sequence[bytes]) -> None:
        data = b"".join(line + b"\n" for line in lines)
        await self._begin(lambda: self._create(path, data))

    async def load(self, path: Path) -> bytes:
        found = await self._begin(lambda: self._load(path))
        assert isinstance(found, bytes)
        return found

    async def rename(self, path: Path, to: Path) -> None:
        self._disk.files[to] = self._disk.files.pop(path)

    async def close(self) -> None:
        """Nothing is open."""

    def _begin(self, work: Callable[[], Awaitable[object]]) -> asyncio.Future[object]:
        """One after the other, and to its end though nobody waits any more."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()

        async def done() -> None:
            try:
                async with self._turn:
                    value = await work()
            except (Conflict, NotFound, Unavailable) as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(value)

        self._life.spawn(done(), "lines")
        return future

    async def _append(self, path: Path, data: bytes) -> None:
        disk = self._disk
        await disk.step(self._life)
        if disk.refuses():
            raise Unavailable("the disk is full", retryable=True)
        file = disk.files.setdefault(path, File())
        file.data = _whole(file.data) + data
        await self._sync(file)

    async def _create(self, path: Path, data: bytes) -> None:
        disk = self._disk
        await disk.step(self._life)
        if path in disk.files:
            raise Conflict(f"{path} exists already")
        if disk.refuses():
            raise Unavailable("the disk is full", retryable=True)
        file = disk.files[path] = File(data)
        try:
            await self._sync(file)
        except Unavailable:
            del disk.files[path]
            raise

    async def _sync(self, file: File) -> None:
        """What was written is on the disk, or nobody knows."""
        size = len(file.data)
        await self._disk.step(self._life)
        if self._disk.refuses():
            raise Unavailable("the disk reports a fault", retryable=True)
        file.synced = max(file.synced, size)
        await self._disk.step(self._life)

    async def _load(self, path: Path) -> bytes:
        await self._disk.step(self._life)
        file = self._disk.files.get(path)
        if file is None:
            raise NotFound(f"{path} does not exist")
        file.data = _whole(file.data)
        file.synced = len(file.data)
        return file.data


def _whole(data: bytes) -> bytes:
    """Without a last line whose writer died."""
    return data[: data.rfind(b"\n") + 1]
