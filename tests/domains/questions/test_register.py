"""Questions are kept on the disk, end once, and are told of; the process that asked may be gone by then."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from garra.core.errors import Conflict, NotFound
from garra.core.questions import Record, items
from garra.domains.questions.register import KEPT_MS, Questions
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.io.tasks import Tasks
from tests.gateway.house import Hands

PLACE = ("telegram", "default", "7", "")


def record(name: str = "", session: str = "agent:main:main") -> Record:
    asked = items([{"question": "Which?", "options": ["A", "B"]}])
    return Record(name, asked, 0, 0, "main", session, "r1", "telegram:default:7", PLACE)


@asynccontextmanager
async def opened(folder: Path, clock: Hands) -> AsyncIterator[Questions]:
    ids = itertools.count(1)
    db = Database(folder / "state.db")
    await db.open()
    try:
        async with Tasks() as spawn:
            made = Questions(Shelf(db, "questions"), clock, spawn, lambda: f"q{next(ids)}")
            await made.load()
            yield made
    finally:
        await db.close()


async def test_a_question_is_waited_for_and_told_of(tmp_path: Path) -> None:
    told: list[tuple[str, bool]] = []
    async with opened(tmp_path, Hands()) as questions:
        end = questions.subscribe(lambda each, *, waited: told.append((each.status, waited)))
        asked = await questions.ask(record(), 60)
        assert questions.here(PLACE, "telegram:default:7") == asked
        assert questions.here(PLACE, "telegram:default:8") is None
        waiting = asyncio.create_task(questions.wait(asked.id))
        await asyncio.sleep(0)
        assert questions.waited(asked.id)
        await questions.end(asked.id, "answered", {"question_1": ("A",)}, "someone")
        assert (await waiting).answers == {"question_1": ("A",)}
        assert not questions.waited(asked.id)
        assert told == [("pending", False), ("answered", True)]
        assert (await questions.wait(asked.id)).status == "answered"
        with pytest.raises(Conflict):
            await questions.end(asked.id, "cancelled")
        end()
        with pytest.raises(NotFound):
            questions.get("nobody")
        with pytest.raises(Conflict):
            await questions.ask(record(asked.id), 60)


async def test_a_newer_question_of_a_session_takes_the_olders_place(tmp_path: Path) -> None:
    async with opened(tmp_path, Hands()) as questions:
        first = await questions.ask(record(), 60)
        other = await questions.ask(record(session="agent:main:other"), 60)
        second = await questions.ask(record(), 60)
        assert questions.get(first.id).status == "cancelled"
        assert {each.id for each in questions.pending()} == {other.id, second.id}


async def test_nobody_answers(tmp_path: Path) -> None:
    clock = Hands()
    async with opened(tmp_path, clock) as questions:
        asked = await questions.ask(record(), 60)
        assert (await questions.wait(asked.id, 0.01)).pending
        waiting = asyncio.create_task(questions.wait(asked.id))
        await asyncio.sleep(0)
        clock.move(61)
        assert (await waiting).status == "expired"


async def test_it_outlives_the_process_and_is_forgotten_in_the_end(tmp_path: Path) -> None:
    clock = Hands()
    async with opened(tmp_path, clock) as questions:
        asked = await questions.ask(record("kept"), 600)
    async with opened(tmp_path, clock) as again:
        assert again.get("kept") == asked
        assert not again.waited("kept")
        await again.end("kept", "answered", {"question_1": ("B",)}, "telegram:default:7")
    clock.move(KEPT_MS / 1000 + 601)
    async with opened(tmp_path, clock) as later:
        with pytest.raises(NotFound):
            later.get("kept")


async def test_what_cannot_be_read_is_put_away(tmp_path: Path) -> None:
    db = Database(tmp_path / "state.db")
    await db.open()
    await Shelf(db, "questions").set("odd", {"id": "odd"})
    await db.close()
    async with opened(tmp_path, Hands()) as questions:
        assert questions.pending() == []
