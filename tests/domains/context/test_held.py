"""A conversation goes on with the memory it began with, and hears of what changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from garra.core.budget import Document
from garra.core.ids import SessionId
from garra.domains.context.held import STORED, Held
from garra.io.store.shelf import Shelf
from tests.stored import stored

ONE = SessionId("s1")


def files(memory: str | None, soul: str = "me") -> tuple[Document, ...]:
    return (Document("SOUL.md", "/w/SOUL.md", soul), Document("MEMORY.md", "/w/MEMORY.md", memory))


@pytest.mark.req("LOOP-11")
async def test_memory_stays_as_it_was_and_its_change_is_told() -> None:
    held = Held()
    first = files("likes figs")
    assert await held.settle(ONE, 0, first) == (first, ())
    shown, notes = await held.settle(ONE, 0, files("likes figs\nhas a dog", "another me"))
    assert shown == files("likes figs", "another me")
    [note] = notes
    assert note.endswith("\n+ has a dog")
    assert await held.settle(ONE, 0, files("likes figs")) == (first, ())


async def test_another_conversation_and_a_smaller_one_begin_with_the_new_text() -> None:
    held = Held()
    await held.settle(ONE, 0, files("a"))
    new = files("b")
    assert await held.settle(SessionId("s2"), 0, new) == (new, ())
    assert await held.settle(ONE, 7, new) == (new, ())
    assert (await held.settle(ONE, 7, files("c")))[0] == new


async def test_a_form_that_is_filled_in_is_new() -> None:
    held = Held()
    blank = Document("USER.md", "/w/USER.md", "Name:", blank=True)
    await held.settle(ONE, 0, (blank,))
    shown, notes = await held.settle(ONE, 0, (Document("USER.md", "/w/USER.md", "Name: Ana"),))
    assert shown == (blank,)
    assert notes[0].endswith("\n+ Name: Ana")


async def test_it_outlasts_a_restart_once_something_changed(tmp_path: Path) -> None:
    async with stored(tmp_path) as db:
        held = Held(Shelf(db, "begun"))
        await held.settle(ONE, 0, files("a"))
        assert await Shelf(db, "begun").items() == {}
        before = await held.settle(ONE, 0, files("a\nb"))
        again = Held(Shelf(db, "begun"))
        assert await again.settle(ONE, 0, files("a\nb")) == before
        gone = (Document("SOUL.md", "/w/SOUL.md", "me"),)
        assert await Held(Shelf(db, "begun")).settle(ONE, 0, gone) == (gone, ())


async def test_only_so_many_are_stored(tmp_path: Path) -> None:
    async with stored(tmp_path) as db:
        held = Held(Shelf(db, "begun"))
        for number in range(STORED + 3):
            await held.settle(SessionId(f"s{number}"), 0, files("a"))
            await held.settle(SessionId(f"s{number}"), 0, files("b"))
        left = await Shelf(db, "begun").items()
        assert len(left) <= STORED + 1
        assert f"s{STORED + 2}" in left
        assert "s0" not in left
