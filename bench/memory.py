"""How well memory finds, and how long it takes: a year of chat, and 10,000 pieces.

    PYTHONPATH=. .venv/bin/python -m bench.memory [--words] [--pieces]

The year's vectors take minutes to make, once: they are kept in `bench/.state/memory`, which is in no repository. With
`--pieces` only the time of searches over exactly 10,000 pieces is measured, by words and by both. With `--words`, or
where the small model is not installed, words alone are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from bench.memory_year import MESSAGES, Question, Year, made, written
from garra.app.memory import installed
from garra.core.memory_sight import Viewer
from garra.domains.memory.index import Memory, Ports, Wanted
from garra.domains.memory.settings import LOCAL, NONE, Settings
from garra.domains.memory.sources import Places
from garra.domains.memory.sync import MIGRATIONS
from garra.domains.models.children import Children
from garra.io.clock import SystemClock
from garra.io.env import read
from garra.io.process.door import Programs
from garra.io.store.db import Connection, Database
from garra.io.tasks import Tasks

STATE = Path(__file__).parent / ".state" / "memory"
OWNER = Viewer("", owner=True)


@asynccontextmanager
async def opened(settings: Callable[[str], Settings]) -> Any:
    """Memory with a real child."""
    programs = Programs()
    async with Tasks() as spawn:
        children = Children(programs, read(), "/")
        found = Memory(Ports(settings, children, spawn, SystemClock(), lambda _: None, installed))
        try:
            yield found
        finally:
            await found.close()
            await programs.close()


def settings(name: str, provider: str) -> Callable[[str], Settings]:
    folder = STATE / name
    places = Places("main", str(folder / "work"), str(folder / "sessions"))
    index = str(folder / ("words.sqlite" if provider == NONE else "memory.sqlite"))
    return lambda _: Settings(places, index, provider, "multilingual-e5-small", least=0.0)


def share(times: Sequence[float], part: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * part))] * 1000


async def asked(memory: Memory, questions: Sequence[Question]) -> tuple[Counter[str], Counter[str], list[float]]:
    """Right answers among five, and all, by kind; and how long each took."""
    right: Counter[str] = Counter()
    every: Counter[str] = Counter()
    times: list[float] = []
    for question in questions:
        began = perf_counter()
        answer = await memory.search(Wanted(question.text, 5), agent_id="main", viewer=OWNER)
        times.append(perf_counter() - began)
        good = any(question.told in hit.text for hit in answer.hits)
        for kind in ("all", question.kind, question.language):
            right[kind] += good
            every[kind] += 1
    return right, every, times


PIECES = 10_000


def trimmed(index: Path) -> None:
    """Leave exactly 10,000 pieces in an index that has more; its files are as they were, so none is read again."""
    db = Database(index, MIGRATIONS)

    def work(connection: Connection) -> None:
        rows = connection.execute("SELECT id FROM chunks ORDER BY id LIMIT -1 OFFSET ?", (PIECES,)).fetchall()
        connection.executemany("DELETE FROM words WHERE rowid=?", rows)
        connection.executemany("DELETE FROM chunks WHERE id=?", rows)

    db.write_now(work)
    db.close_now()


async def timed(year: Year, provider: str) -> None:
    """How long searches over exactly 10,000 pieces take: 2,000 of them, and the bound that holds."""
    name, mode, bound = "pieces-exact", "words" if provider == NONE else "hybrid", 30 if provider == NONE else 80
    written(year, STATE / name / "sessions")
    async with opened(settings(name, provider)) as memory:
        await memory.index("main")
        await memory.settled("main")
    await asyncio.to_thread(trimmed, Path(settings(name, provider)("main").index))
    async with opened(settings(name, provider)) as memory:
        await asked(memory, year.questions[:50])
        times: list[float] = []
        while len(times) < 2_000:
            times += (await asked(memory, year.questions))[2]
        counts, _ = await memory.counts("main")
        pieces = sum(counts.chunks.values())
        print(f"{mode}: {pieces} pieces, {counts.done} of {counts.wanted} with vectors, {len(times)} searches: "
              f"p50 {share(times, 0.5):.1f} ms, p95 {share(times, 0.95):.1f} ms (bound {bound} ms)")  # fmt: skip
        assert pieces == PIECES


async def measured(name: str, year: Year, provider: str) -> None:
    written(year, STATE / name / "sessions")
    mode = "words" if provider == NONE else "hybrid"
    async with opened(settings(name, provider)) as memory:
        began, cpu = perf_counter(), process_time()
        await memory.index("main")
        print(f"{name} {mode}: indexed in {perf_counter() - began:.1f} s, {process_time() - cpu:.1f} s of CPU here")
        await memory.settled("main")
        print(f"{name} {mode}: vectors after {perf_counter() - began:.0f} s")
        await asked(memory, year.questions[:5])
        right, every, times = await asked(memory, year.questions)
        counts, _ = await memory.counts("main")
        found = ", ".join(f"{kind} {right[kind] / every[kind]:.3f} of {every[kind]}" for kind in every)
        print(f"{name} {mode}: {sum(counts.chunks.values())} pieces, recall@5 {found}")
        print(f"{name} {mode}: search p50 {share(times, 0.5):.1f} ms, p95 {share(times, 0.95):.1f} ms")


async def main(*, words: bool, pieces: bool) -> None:
    modes = [NONE] if words or not installed() else [NONE, LOCAL]
    if pieces:
        for provider in modes:
            await timed(made(seed=8, messages=20_600), provider)
        return
    year, small = made(), made(seed=8, messages=20_000)
    for provider in modes:
        await measured(f"year-{MESSAGES}", year, provider)
    for provider in modes:
        await measured("pieces-10000", small, provider)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", action="store_true", help="words alone")
    parser.add_argument("--pieces", action="store_true", help="only the time of searches over exactly 10,000 pieces")
    given = parser.parse_args()
    asyncio.run(main(words=given.words, pieces=given.pieces))
    sys.exit(0)
