"""The state database: one writer, many awaiters.

Writes that gather while one is being committed share the next commit. Each runs in its own savepoint, so that one
caller's fault undoes only that caller's work. A write returns when it is committed; with `durable` it then also
survives a power cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, cast

from garra.core.errors import Conflict, GarraError, Unavailable, UserError
from garra.io.files import atomic
from garra.io.store.jobs import Job, Worker, settle

T = TypeVar("T")
Connection = sqlite3.Connection
Row = tuple[object, ...]
Work = Callable[[Connection], T]

BUSY_MS = 10_000
"""How long another process may hold the database before a write gives up."""

WAL_BYTES = 8 << 20
"""What the write-ahead log is cut down to."""

_MIGRATIONS = Path(__file__).parent / "migrations"


class _Task(Job):
    __slots__ = ("durable", "settled", "work")

    def __init__(
        self,
        work: Work[object],
        *,
        durable: bool = False,
        settled: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        super().__init__()
        self.work = work
        self.durable = durable
        self.settled = settled

    def finished(self) -> None:
        if self.settled is not None:
            self.settled(self.error)


class Database:
    """One SQLite file. Made at once, opened with the first use (`open` does it early, to show its fault)."""

    def __init__(self, path: Path, migrations: Path = _MIGRATIONS) -> None:
        self.path = path
        self._migrations = migrations
        self._writing: Connection | None = None
        self._reading: Connection | None = None
        self._full = False
        self._writer: Worker[_Task] = Worker("garra-db-write", self._write_all, self._end_writing)
        self._reader: Worker[_Task] = Worker("garra-db-read", self._read_all, self._end_reading)

    async def open(self) -> None:
        """Raises UserError (a newer or broken file) or Unavailable (read only, full, locked)."""
        await self.write(lambda _: None)

    async def write(self, work: Work[T], *, durable: bool = False) -> T:
        """Run `work` in the writer's thread and give back its value once committed; its exception is raised here.

        `durable`: the commit is on the disk, not only with the operating system.
        """
        return cast(T, await self._writer.begin(_Task(work, durable=durable)))

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a connection that cannot write; it sees every write that has returned."""
        return cast(T, await self._reader.begin(_Task(work)))

    def write_now(self, work: Work[T], *, durable: bool = False) -> T:
        """`write` for programs without a loop."""
        return cast(T, self._writer.wait(_Task(work, durable=durable)))

    def read_now(self, work: Work[T]) -> T:
        """`read` for programs without a loop."""
        return cast(T, self._reader.wait(_Task(work)))

    def post(self, work: Work[None], settled: Callable[[BaseException | None], None]) -> None:
        """Write, do not wait; `settled` is told how it went, in the writer's thread. Raises Unavailable when closed."""
        self._writer.submit(_Task(work, settled=settled))

    async def close(self) -> None:
        """Finish what is queued and close the file."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        self._reader.close()
        self._writer.close()

    def _write_all(self, tasks: list[_Task]) -> None:
        fault = self._commit(tasks)
        for task in tasks:
            task.error = fault or task.error
        settle(tasks)

    def _commit(self, tasks: list[_Task]) -> GarraError | None:
        """Run all in one transaction. Gives back what kept it from being committed."""
        try:
            connection = self._connected()
            self._level(connection, full=any(task.durable for task in tasks))
            connection.execute("BEGIN IMMEDIATE")
            if len(tasks) == 1:
                _alone(connection, tasks[0], self.path)
                return None
            for task in tasks:
                _step(connection, task, self.path)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            return explained(error, self.path)
        except OSError as error:
            return Unavailable(f"cannot use {self.path}: {error.strerror or error}")
        except GarraError as error:
            return error
        return None

    def _undo(self) -> None:
        if self._writing is not None and self._writing.in_transaction:
            self._writing.execute("ROLLBACK")

    def _level(self, connection: Connection, *, full: bool) -> None:
        if full != self._full:
            connection.execute(f"PRAGMA synchronous={'FULL' if full else 'NORMAL'}")
            self._full = full

    def _connected(self) -> Connection:
        if self._writing is None:
            with atomic.writing(self.path):
                atomic.folder(self.path.parent)
                if not self.path.exists():  # SQLite would make it for everybody to read
                    os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, atomic.FILE_MODE))
            with contextlib.ExitStack() as unless_good:
                connection = _connect(self.path)
                unless_good.callback(connection.close)
                steps = pending(connection, self.path, self._migrations)
                _prepare(connection)
                migrate(connection, steps)
                unless_good.pop_all()
            self._writing = connection
        return self._writing

    def _read_all(self, tasks: list[_Task]) -> None:
        try:
            connection = self._readable()
        except GarraError as error:
            for task in tasks:
                task.error = error
        else:
            for task in tasks:
                with task:
                    task.value = task.work(connection)
                if isinstance(task.error, sqlite3.Error):
                    task.error = explained(task.error, self.path)
        settle(tasks)

    def _readable(self) -> Connection:
        if self._reading is None:
            self._writer.wait(_Task(lambda _: None))
            self._reading = _connect(self.path)
            self._reading.execute("PRAGMA query_only=1")
        return self._reading

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()

    def _end_writing(self) -> None:
        if self._writing is not None:
            self._writing.close()


def _connect(path: Path) -> Connection:
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys=1")
    return connection


def _prepare(connection: Connection) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", f"journal_size_limit={WAL_BYTES}"):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _step(connection: Connection, task: _Task, path: Path) -> None:
    """One caller's work, undone alone when it fails. Raises sqlite3.Error when the whole transaction is gone."""
    connection.execute("SAVEPOINT step")
    with task:
        task.value = task.work(connection)
    if isinstance(task.error, sqlite3.Error):
        if not connection.in_transaction:
            raise task.error
        task.error = explained(task.error, path)
    if task.error is not None:
        connection.execute("ROLLBACK TO step")
    connection.execute("RELEASE step")


def _alone(connection: Connection, task: _Task, path: Path) -> None:
    """The only caller's work: its transaction is undone where it fails. Raises sqlite3.Error when it is gone."""
    with task:
        task.value = task.work(connection)
    if isinstance(task.error, sqlite3.Error):
        if not connection.in_transaction:
            raise task.error
        task.error = explained(task.error, path)
    connection.execute("COMMIT" if task.error is None else "ROLLBACK")


def pending(connection: Connection, path: Path, folder: Path = _MIGRATIONS) -> list[tuple[int, Path]]:
    """The numbered steps that the file has yet to go. Raises UserError for a newer file, which is not touched."""
    have = int(connection.execute("PRAGMA user_version").fetchone()[0])
    steps = list(enumerate(sorted(folder.glob("[0-9]*.sql")), start=1))
    if have > len(steps):
        raise UserError(
            f"{path} was written by a newer Garra (schema {have}, this one knows {len(steps)}): "
            "update garra, or use another state directory; the file was not touched"
        )
    return steps[have:]


def migrate(connection: Connection, steps: Sequence[tuple[int, Path]]) -> None:
    """Go `steps`, each in a transaction of its own. Another process that opens the same file waits for its turn."""
    for number, step in steps:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] < number:
            for statement in statements(step.read_text()):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={number}")
        connection.execute("COMMIT")


def statements(text: str) -> Iterator[str]:
    """The SQL statements of a file, one by one."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


_REMEDIES: Sequence[tuple[tuple[str, ...], str]] = (
    (("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"), "the disk is full: free some space, then try again"),
    (("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"), "it cannot be written: check its rights"),
    (("SQLITE_BUSY", "SQLITE_LOCKED"), "another program holds it: stop that program, then try again"),
    (("SQLITE_IOERR",), "the disk reports a fault"),
)


def explained(error: sqlite3.Error, path: Path) -> GarraError:
    """An SQLite fault as a line that says what to do."""
    name = getattr(error, "sqlite_errorname", "")
    for names, remedy in _REMEDIES:
        if name.startswith(names):
            return Unavailable(f"cannot use {path}: {remedy}", details={"sqlite": name}, retryable=True)
    if isinstance(error, sqlite3.IntegrityError):
        return Conflict(f"{path}: {error}", details={"sqlite": name})
    if name in ("SQLITE_CORRUPT", "SQLITE_NOTADB"):
        return UserError(f"{path} is damaged: move it away and start again; chats are restored from their transcripts")
    return UserError(f"{path}: {error}", details={"sqlite": name})
