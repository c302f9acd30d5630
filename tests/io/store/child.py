"""Programs that tests start, starve and kill. Usage: child.py WHAT FOLDER"""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
import sys
from functools import partial
from pathlib import Path

from garra.core.errors import GarraError
from garra.io.store.db import Connection, Database
from garra.io.store.lines import Lines


def tell(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def insert(connection: Connection, row: tuple[str, str, str]) -> None:
    connection.execute("INSERT INTO shelf VALUES (?,?,?)", row)


async def append(folder: Path) -> None:
    """Append for ever, several at a time, and tell each line once it is acknowledged."""
    lines = Lines()

    async def one(name: str) -> None:
        for number in itertools.count():
            line = f'{{"file":"{name}","number":{number},"filler":"{"x" * (number * 37 % 900)}"}}'
            await lines.append(folder / f"{name}.jsonl", [line.encode()])
            tell(f"{name} {number}")

    await asyncio.gather(*(one(name) for name in "abcdef"))


async def write(folder: Path) -> None:
    """Write rows for ever, several at a time, and tell each once it is acknowledged."""
    db = Database(folder / "state.db")

    async def one(name: str) -> None:
        for number in itertools.count():
            await db.write(partial(insert, row=(name, str(number), "1")), durable=True)
            tell(f"{name} {number}")

    await asyncio.gather(*(one(name) for name in "abcdef"))


async def fill_lines(folder: Path) -> None:
    """Append until the disk refuses; tell how many were acknowledged, and the refusal."""
    lines, count = Lines(), 0
    try:
        while count < 100_000:
            await lines.append(folder / "a.jsonl", [b'"%s"' % (b"x" * 700)])
            count += 1
    except GarraError as error:
        tell(f"{count} {type(error).__name__} {error.message}")
    await lines.close()


async def fill_db(folder: Path) -> None:
    """Write until the disk refuses; tell how many were acknowledged, and the refusal."""
    db, count = Database(folder / "state.db"), 0
    try:
        while count < 100_000:
            await db.write(partial(insert, row=("s", str(count), "x" * 7_000)))
            count += 1
    except GarraError as error:
        tell(f"{count} {type(error).__name__} {error.message}")
    if not count:
        return
    kept = await db.read(lambda c: c.execute("SELECT count(*) FROM shelf").fetchone()[0])
    tell(f"kept {kept}")
    await db.close()


async def limited(folder: Path) -> None:
    """As `fill_lines`, where no file may grow beyond some bytes in the middle of a line."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    await fill_lines(folder)


WHAT = {"append": append, "write": write, "fill-lines": fill_lines, "fill-db": fill_db, "limited": limited}

if __name__ == "__main__":
    asyncio.run(WHAT[sys.argv[1]](Path(sys.argv[2])))
