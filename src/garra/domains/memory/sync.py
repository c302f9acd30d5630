"""The index brought to what the files are now: what is new is read, what is gone is forgotten. Everything blocks."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from garra.core import memory_sight, taint
from garra.core.errors import GarraError, UserError
from garra.core.memory_chunks import OVERLAP, SIZE, markdown, some, turns
from garra.core.value import frozen
from garra.domains.memory import rows
from garra.domains.memory.rows import File
from garra.domains.memory.sources import Places, Source, found, key_of, said
from garra.io.store.db import Connection, Database

log = logging.getLogger(__name__)

MIGRATIONS: Final = Path(__file__).parent / "migrations"
HEAD: Final = 4_096
SLICE: Final = 1 << 20
"""Bytes of a transcript that are read and written at a time, about."""


@frozen
class Cut:
    """How pieces are made, in tokens."""

    size: int = SIZE
    overlap: int = OVERLAP

    @property
    def identity(self) -> str:
        return f"1:{self.size}:{self.overlap}"


@frozen
class Done:
    """What was brought up to date: files, and bytes that were read."""

    files: int = 0
    gone: int = 0
    bytes: int = 0
    faults: tuple[str, ...] = ()


class _State(msgspec.Struct):
    """Where reading a transcript goes on: the last turn, which may not be over, is read again."""

    offset: int = 0
    line: int = 0
    head: str = ""
    marks: list[dict[str, str]] = []


def opened(path: Path) -> Database:
    """The index. One that is damaged, or that a newer Garra made, is made anew: the files have everything."""
    db = Database(path, MIGRATIONS)
    try:
        db.write_now(lambda connection: connection.execute("SELECT count(*) FROM files").fetchone())
    except UserError as fault:
        log.warning("the index of memory is made anew: %s", fault.message)
        db.close_now()
        removed(path)
        db = Database(path, MIGRATIONS)
        db.write_now(lambda _: None)
    return db


def removed(path: Path) -> None:
    """Delete an index."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def waiting(db: Database, places: Places, cut: Cut) -> tuple[list[Source], int]:
    """Files that are new or changed, with how many bytes of them were never read."""
    known = db.read_now(rows.files)
    if db.read_now(lambda connection: rows.told(connection, "cut")) != cut.identity:
        known = {}
    new = [each for each in found(places) if _changed(each, known.get(each.path))]
    return new, sum(max(each.size - _size(known.get(each.path)), 1) for each in new)


def _size(file: File | None) -> int:
    return file.size if file is not None and file.source == "sessions" else 0


def _changed(source: Source, file: File | None) -> bool:
    return file is None or (file.size, file.changed) != (source.size, source.changed)


def sync(
    db: Database, places: Places, cut: Cut, *, force: bool = False, rest: Callable[[], None] | None = None
) -> Done:
    """Bring the index up to date; `force` reads everything again. `rest` is called between two files."""
    if force or db.read_now(lambda connection: rows.told(connection, "cut")) != cut.identity:
        db.write_now(lambda connection: connection.execute("UPDATE files SET size=-1, digest='', state=''"))
    known = db.read_now(rows.files)
    now = found(places)
    gone = known.keys() - {each.path for each in now}
    for path in gone:
        db.write_now(partial(rows.drop, path=path))
    read = files = 0
    faults: list[str] = []
    for source in now:
        if not _changed(source, known.get(source.path)):
            continue
        try:
            old = known.get(source.path)
            memory = source.kind == "memory"
            read += _file(db, source, old, cut) if memory else _transcript(db, source, old, places)
            files += 1
        except (OSError, GarraError) as fault:
            faults.append(f"{source.path}: {fault}")
        if rest is not None:
            rest()
    db.write_now(lambda connection: rows.told(connection, "cut", cut.identity))
    return Done(files, len(gone), read, tuple(faults))


def _file(db: Database, source: Source, known: File | None, cut: Cut) -> int:
    data = Path(source.file).read_bytes()
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    file = File(source.path, "memory", "", source.size, source.changed, digest)
    if known is not None and known.digest == digest:
        chunks = None
    else:
        chunks = markdown(data.decode("utf-8", "replace"), source.path, size=cut.size, overlap=cut.overlap)

    def write(connection: Connection) -> None:
        if chunks is None:
            connection.execute("UPDATE files SET size=?, changed=? WHERE path=?", (file.size, file.changed, file.path))
        else:
            rows.put(connection, file, chunks)

    db.write_now(write)
    return len(data)


def _transcript(db: Database, source: Source, known: File | None, places: Places) -> int:
    """Read on where the last turn began; all anew where the file is not the one it was."""
    with Path(source.file).open("rb") as file:
        head = hashlib.blake2b(file.read(min(HEAD, source.size)), digest_size=16).hexdigest()
        state = _kept(known, head, source.size)
        key = known.session if known is not None and state.offset else key_of(source, places)
        if not key:
            db.write_now(lambda connection: rows.put(connection, _row(source, "", _State()), ()))
            return 0
        reading = _Reading(db, source, key, main=places.main, state=state)
        step = SLICE
        while not reading.over:
            file.seek(reading.state.offset)
            data = file.read(step)
            step = SLICE if reading.take(data) else step * 2
    return source.size - state.offset


class _Reading:
    """One transcript while it is read, from where `state` says on."""

    def __init__(self, db: Database, source: Source, key: str, *, main: str, state: _State) -> None:
        self.db, self.source, self.key, self.main, self.state = db, source, key, main, state
        self.over = False

    def take(self, data: bytes) -> bool:
        """Take in a piece of the file; False where it holds no whole turn, so that a larger one is wanted."""
        state = self.state
        self.over = state.offset + len(data) >= self.source.size or not data
        if not self.over:
            data = data[: data.rfind(b"\n") + 1]
        lines = list(said(data, self.key, self.main, state.line + 1))
        begun = [(at, line.number) for at, line in lines if line.role == "user"]
        at, number = begun[-1] if begun else (0, state.line + 1)
        if not self.over:
            if at == 0:
                return False
            lines = [each for each in lines if each[1].number < number]
        read = taint.of({taint.META: state.marks}) if state.marks else ()
        spoken = [line for _, line in lines]
        chunks = turns(spoken, read)
        marks = (*read, *(mark for line in spoken if line.number < number for mark in line.marks))
        kept = taint.stored(some(marks)).get(taint.META, [])
        self.state = _State(state.offset + at, number - 1, state.head, kept)
        row = _row(self.source, self.key, self.state, whole=self.over)
        owner = memory_sight.owner_of(self.key, {}, self.main)
        self.db.write_now(lambda connection: rows.put(connection, row, chunks, owner, after=state.line))
        return True


def _kept(known: File | None, head: str, size: int) -> _State:
    """Where to go on in a transcript; at its beginning where it is not the file that it was."""
    if known is None or known.size > size or not known.state:
        return _State(head=head)
    try:
        state = msgspec.json.decode(known.state, type=_State)
    except msgspec.DecodeError:
        return _State(head=head)
    if state.head != head and known.size >= HEAD:
        return _State(head=head)
    return _State(state.offset, state.line, head, state.marks)


def _row(source: Source, key: str, state: _State, *, whole: bool = True) -> File:
    """`whole`: all of it was read; else it is looked at again next time."""
    told = msgspec.json.encode(state).decode()
    size, changed = (source.size, source.changed) if whole else (state.offset, 0)
    return File(source.path, "sessions", key, size, changed, "", told)
