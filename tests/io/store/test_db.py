"""The state database on a real disk."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from garra.core.errors import Conflict, UserError
from garra.io.store.db import Connection, Database
from garra.io.store.jobs import Job, Worker
from tests.io.store.test_lines import killed, run


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(tmp_path / "state" / "state.db")
    yield opened
    await opened.close()


def insert(connection: Connection, key: str, value: str = "1") -> int:
    connection.execute("INSERT INTO shelf VALUES ('s',?,?)", (key, value))
    return len(key)


def count(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM shelf").fetchone()[0])


async def test_its_files_are_its_owners_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        db = Database(tmp_path / "deep" / "state" / "state.db")
        await db.write(lambda c: insert(c, "abc"))
        made = [db.path.parent.parent, db.path.parent, *db.path.parent.iterdir()]
        await db.close()
    finally:
        os.umask(old)
    assert [path.name for path in made if path.exists() and path.stat().st_mode & 0o077] == []


async def test_a_write_gives_its_value_and_is_seen_by_the_next_read(db: Database) -> None:
    assert await db.write(lambda c: insert(c, "abc")) == 3
    assert await db.read(count) == 1
    assert await db.write(lambda c: insert(c, "de"), durable=True) == 2
    assert await db.read(count) == 2


async def test_many_writers_share_commits(db: Database) -> None:
    await db.open()
    gate, begun = threading.Event(), asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()

    statements: list[str] = []

    def hold(connection: Connection) -> None:
        connection.set_trace_callback(statements.append)
        loop.call_soon_threadsafe(begun.set_result, None)
        gate.wait(5)

    first = asyncio.gather(db.write(hold))
    await begun
    rest = asyncio.gather(*(db.write(partial(insert, key=str(n))) for n in range(100)))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, rest)
    assert statements.count("COMMIT") == 2
    assert await db.read(count) == 100


async def test_one_callers_fault_undoes_only_its_own_work(db: Database) -> None:
    def spoil(connection: Connection) -> None:
        insert(connection, "spoilt")
        raise LookupError("mine")

    def twice(connection: Connection) -> None:
        insert(connection, "a")

    outcomes = await asyncio.gather(
        db.write(lambda c: insert(c, "a")),
        db.write(spoil),
        db.write(twice),
        db.write(lambda c: c.execute("no such words")),
        db.write(lambda c: insert(c, "b")),
        return_exceptions=True,
    )
    assert outcomes[0] == outcomes[4] == 1
    assert isinstance(outcomes[1], LookupError)
    assert isinstance(outcomes[2], Conflict)
    assert isinstance(outcomes[3], UserError)
    rows = await db.read(lambda c: [key for (key,) in c.execute("SELECT key FROM shelf ORDER BY key")])
    assert rows == ["a", "b"]


async def test_a_reader_cannot_write(db: Database) -> None:
    with pytest.raises(UserError):
        await db.read(lambda c: insert(c, "x"))
    with pytest.raises(LookupError):
        await db.read(lambda c: [][1])
    assert await db.read(count) == 0


def test_programs_without_a_loop(tmp_path: Path) -> None:
    db = Database(tmp_path / "state.db")
    assert db.write_now(lambda c: insert(c, "a")) == 1
    assert db.read_now(count) == 1
    with pytest.raises(LookupError):
        db.write_now(lambda c: [][1])
    db.close_now()
    with pytest.raises(UserError, match="closed"):
        db.read_now(count)


def test_nobody_needs_to_wait_for_a_write(tmp_path: Path) -> None:
    db = Database(tmp_path / "state.db")
    faults: list[BaseException | None] = []

    def spoil(connection: Connection) -> None:
        raise LookupError("mine")

    db.post(lambda c: None, faults.append)
    db.post(spoil, faults.append)
    db.close_now()
    assert [type(fault) for fault in faults] == [type(None), LookupError]


async def test_a_newer_file_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = path.read_bytes()
    db = Database(path)
    for attempt in (db.open(), db.read(count)):
        with pytest.raises(UserError, match=r"newer Garra \(schema 99.*update garra"):
            await attempt
    await db.close()
    assert path.read_bytes() == before


async def test_an_older_file_is_brought_up_to_date(tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001.sql").write_text("-- one; two\nCREATE TABLE\n a (x);\nINSERT INTO a VALUES (1)")
    first = Database(tmp_path / "state.db", folder)
    await first.open()
    await first.close()
    (folder / "0002.sql").write_text("ALTER TABLE a ADD COLUMN y DEFAULT 2;")
    second = Database(tmp_path / "state.db", folder)
    assert await second.read(lambda c: c.execute("SELECT x, y FROM a").fetchall()) == [(1, 2)]
    assert await second.read(lambda c: c.execute("PRAGMA user_version").fetchone()) == (2,)
    await second.close()


async def test_a_step_that_fails_leaves_the_file_at_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001.sql").write_text("CREATE TABLE a (x);")
    (folder / "0002.sql").write_text("CREATE TABLE b (x);\nnonsense;")
    db = Database(tmp_path / "state.db", folder)
    with pytest.raises(UserError):
        await db.open()
    await db.close()
    connection = sqlite3.connect(tmp_path / "state.db")
    names = connection.execute("SELECT name FROM sqlite_master").fetchall()
    connection.close()
    assert names == [("a",)]


async def test_a_damaged_file_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"this is no database at all" * 100)
    db = Database(path)
    with pytest.raises(UserError, match="is damaged: move it away"):
        await db.open()
    await db.close()


async def test_a_folder_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    db = Database(tmp_path / "file" / "state.db")
    with pytest.raises(UserError, match="cannot be written: Not a directory"):
        await db.open()
    await db.close()


@pytest.mark.needs("bwrap")
def test_a_full_disk_is_said_in_one_line_and_loses_nothing(tmp_path: Path) -> None:
    cell = ("bwrap", "--dev-bind", "/", "/", "--size", "3000000", "--tmpfs", str(tmp_path))
    refusal, kept = run("fill-db", tmp_path, *cell)
    assert "Unavailable" in refusal
    assert "the disk is full: free some space" in refusal
    assert kept == f"kept {refusal.split()[0]}"


@pytest.mark.needs("bwrap")
def test_a_read_only_disk_is_said_in_one_line(tmp_path: Path) -> None:
    db = Database(tmp_path / "state.db")
    db.write_now(lambda _: None)
    db.close_now()
    cell = ("bwrap", "--dev-bind", "/", "/", "--ro-bind", str(tmp_path), str(tmp_path))
    refusal = run("fill-db", tmp_path, *cell)[0]
    assert refusal.startswith("0 Unavailable")
    assert "check its rights" in refusal


@pytest.mark.parametrize("seed", range(4))
def test_every_acknowledged_row_survives_kill_minus_nine(tmp_path: Path, seed: int) -> None:
    acknowledged = killed("write", tmp_path, 0.05 * seed)
    connection = sqlite3.connect(tmp_path / "state.db")
    kept = {f"{space} {key}" for space, key in connection.execute("SELECT space, key FROM shelf")}
    connection.close()
    assert set(acknowledged) <= kept


def test_a_fault_of_the_store_itself_leaves_nobody_waiting() -> None:
    def run(jobs: list[Job]) -> None:
        raise ZeroDivisionError

    worker: Worker[Job] = Worker("broken", run, lambda: None)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            worker.wait(Job())
    worker.close()
