"""Dreaming over real files and a real store: what is proposed, what comes in, what goes again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from garra.core.dreaming import Bar, digest
from garra.core.errors import Conflict, NotFound, Unavailable, UserError
from garra.core.forgetting import Person
from garra.core.value import replace
from garra.domains.memory import dreaming, recalls
from garra.domains.memory.dreaming import Ground, Night, Thought
from garra.domains.memory.recalls import Found
from garra.io.files.root import Root
from garra.io.store.db import Database
from garra.testing.clock import ManualClock
from tests.domains.memory.year import NOW, add, note, person, places, transcript

TODAY, DAY = "2025-10-09", "memory/2025-10-09.md"
LOW = Night(bar=Bar(score=0.0, recalls=1, queries=0))
STOVE, ROOF = "The cabin has a red stove", "The cabin needs a new roof"


@asynccontextmanager
async def ground(root: Path, **more: Any) -> AsyncIterator[Ground]:
    where = await asyncio.to_thread(places, root)
    db = Database(root / "state.db")
    numbers = count(1)
    try:
        yield Ground(
            "main", db, where, Root(where.workspace), ManualClock(NOW), UTC, lambda: f"dream-{next(numbers)}",
            asyncio.Lock(), **more,
        )  # fmt: skip
    finally:
        await db.close()


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Ground]:
    async with ground(tmp_path) as made:
        yield made


def memory(root: Path) -> str:
    path = root / "work" / "MEMORY.md"
    return path.read_text() if path.exists() else ""


async def found(here: Ground, text: str, query: str, path: str = DAY, line: int = 1) -> None:
    one = Found("main", query, TODAY, here.clock.now_ms(), ((digest(text), path, line, 1.0),))
    await here.db.write(partial(recalls.note, found=one))


@pytest.mark.req("SESS-18")
async def test_a_night_puts_a_line_into_memory_and_the_diary_stays(tmp_path: Path, here: Ground) -> None:
    note(tmp_path, DAY, f"- {STOVE}\n- {ROOF}\n")
    for query in ("stove", "red", "heating", "cabin"):
        await found(here, STOVE, query)
    done = await dreaming.dream(here, Night(auto=True))
    assert [(each["state"], each["lines"][0]["text"]) for each in done["dreams"]] == [("applied", STOVE)]
    assert memory(tmp_path) == f"## From dreams, {TODAY}\n- {STOVE} <!-- from {DAY}#L1 -->\n"
    assert (tmp_path / "work" / DAY).read_text() == f"- {STOVE}\n- {ROOF}\n"
    assert [row["text"] for row in done["left"]] == [ROOF]
    pages = (tmp_path / "work" / "DREAMS.md").read_text()
    assert f"## {TODAY}" in pages
    assert "cabin" in pages
    again = await dreaming.dream(here, Night(auto=True))
    assert again["dreams"] == []
    assert again["left"][0]["why"] == [f"the dream {done['dreams'][0]['id']} put it in", "it is kept already"]


async def test_what_is_from_outside_waits_for_a_person_whatever_is_set(tmp_path: Path, here: Ground) -> None:
    note(tmp_path, DAY, f"<!-- from a conversation that read https://x.example/ -->\n- {STOVE}\n")
    done = await dreaming.dream(here, replace(LOW, auto=True))
    [one] = done["dreams"]
    assert (one["state"], one["outside"]) == ("proposed", True)
    with pytest.raises(UserError, match="a person has to look at it"):
        await dreaming.decide(here, one["id"], "apply", by="owner")
    assert memory(tmp_path) == ""
    await dreaming.decide(here, one["id"], "apply", by="owner", confirmed=True)
    assert "that read https://x.example/ -->" in memory(tmp_path)


async def test_a_proposal_is_refused_taken_in_and_taken_back(tmp_path: Path, here: Ground) -> None:
    note(tmp_path, DAY, f"- {STOVE}\n")
    [one] = (await dreaming.dream(here, LOW))["dreams"]
    id_ = one["id"]
    assert (await dreaming.decide(here, id_, "refuse", by="owner"))["state"] == "refused"
    assert (await dreaming.dream(here, LOW))["dreams"] == []
    with pytest.raises(Conflict, match="nothing to undo"):
        await dreaming.decide(here, id_, "undo", by="owner")
    done = await dreaming.decide(here, id_, "apply", by="owner")
    assert (done["state"], done["decidedBy"]) == ("applied", "owner")
    with pytest.raises(Conflict, match="applied already"):
        await dreaming.decide(here, id_, "refuse", by="owner")
    assert (await dreaming.shown(here, id_))["diff"].splitlines()[-1].startswith("+- The cabin")
    note(tmp_path, "MEMORY.md", memory(tmp_path).replace("red", "green"))
    gone = await dreaming.decide(here, id_, "undo", by="owner")
    assert gone["gone"] == [STOVE]
    assert "green" in memory(tmp_path)
    assert [each["state"] for each in (await dreaming.listed(here, "undone"))["dreams"]] == ["undone"]
    with pytest.raises(NotFound, match="there is no dream"):
        await dreaming.shown(here, "nothing")


async def test_a_line_that_is_gone_or_now_another_s_does_not_come_in(tmp_path: Path, here: Ground) -> None:
    note(tmp_path, DAY, f"- {STOVE}\n- {ROOF}\n")
    [one] = (await dreaming.dream(here, LOW))["dreams"]
    note(tmp_path, DAY, f"- new\n- {STOVE}\n<!-- from a conversation with irc:a:b -->\n- {ROOF}\n")
    shown = await dreaming.shown(here, one["id"])
    assert shown["gone"] == [ROOF]
    done = await dreaming.decide(here, one["id"], "apply", by="owner")
    assert (done["gone"], f"{DAY}#L2" in memory(tmp_path), ROOF in memory(tmp_path)) == ([ROOF], True, False)
    await dreaming.decide(here, one["id"], "undo", by="owner")
    note(tmp_path, DAY, "- nothing of it\n")
    with pytest.raises(Conflict, match="no line"):
        await dreaming.decide(here, one["id"], "apply", by="owner")


async def test_what_was_said_is_a_candidate_once_it_was_sought_elsewhere(tmp_path: Path, here: Ground) -> None:
    said = "My sister Ana lives in Ghent"
    path = transcript(tmp_path, "a", "agent:main:main", [("user", said)])
    add(path, [("toolResult", "a page"), ("user", "Her flat has a view over the river")])
    other = transcript(tmp_path, "b", "agent:main:telegram:direct:7", [("user", "Bob grows tomatoes")], **person("7"))
    await found(here, said, "ana", "sessions/a.jsonl", 3)
    await found(here, "Her flat has a view over the river", "flat", "sessions/a.jsonl", 5)
    await found(here, "Bob grows tomatoes", "tomatoes", f"sessions/{other.name}", 3)
    await found(here, "gone", "gone", "sessions/gone.jsonl", 3)
    rows = {row["text"]: row for row in (await dreaming.dream(here, replace(LOW, dry=True)))["proposed"]}
    assert set(rows) == {said, "Her flat has a view over the river", "Bob grows tomatoes"}
    assert (rows[said]["owner"], rows[said]["read"]) == ("", "")
    assert rows["Her flat has a view over the river"]["read"]
    assert rows["Bob grows tomatoes"]["owner"] == "telegram:default:7"
    assert (await dreaming.listed(here))["dreams"] == []


async def test_only_the_phases_that_are_asked_for(tmp_path: Path, here: Ground) -> None:
    note(tmp_path, DAY, f"- {STOVE}\n- {ROOF}\n")
    light = await dreaming.dream(here, replace(LOW, phases=("light",)))
    assert (light["themes"], light["proposed"], light["candidates"]) == ([], [], 2)
    rem = await dreaming.dream(here, replace(LOW, phases=("rem",)))
    assert rem["themes"] == [{"word": "cabin", "count": 2}]
    met = await here.db.read(partial(recalls.every, agent="main"))
    assert {(each.light, each.rem) for each in met.values()} == {(1, 1)}
    assert memory(tmp_path) == ""


async def test_a_model_s_words_are_a_page_and_its_failure_is_none(tmp_path: Path) -> None:
    asked: list[str] = []

    async def think(notes: str) -> Thought:
        asked.append(notes)
        if len(asked) > 1:
            raise Unavailable("no key is set")
        return "The cabin keeps coming back.", {"input": 9}

    note(tmp_path, DAY, f"- {STOVE}\n- {ROOF}\n<!-- from a conversation with irc:a:b -->\n- The cabin is a trap\n")
    async with ground(tmp_path, think=think) as here:
        done = await dreaming.dream(here, LOW)
        assert (done["reflection"], done["usage"]) == ("The cabin keeps coming back.", {"input": 9})
        assert "trap" not in asked[0]
        assert "keeps coming back" in (tmp_path / "work" / "DREAMS.md").read_text()
        assert "reflection" not in await dreaming.dream(here, LOW)


async def test_the_book_of_dreams_is_bounded_and_keeps_its_name(tmp_path: Path, here: Ground) -> None:
    note(tmp_path, DAY, f"- {STOVE}\n- {ROOF}\n")
    note(tmp_path, "dreams.md", "# Dreams\n\n## 2020-01-01\n" + "x" * dreaming.LIMIT + "\n\n## 2020-01-02\n\nkept\n")
    await dreaming.dream(here, LOW)
    text = (tmp_path / "work" / "dreams.md").read_text()
    assert "2020-01-01" not in text
    assert "kept" in text
    assert f"## {TODAY}" in text
    assert not (tmp_path / "work" / "DREAMS.md").exists()


async def test_it_can_be_told_why(tmp_path: Path, here: Ground) -> None:
    note(tmp_path, DAY, f"- {STOVE}\n- {ROOF}\n")
    [row] = (await dreaming.explained(here, Night(), "stove"))["candidates"]
    assert not row["promoted"]
    assert "0 of 3 different questions found it" in row["why"]
    [row] = (await dreaming.explained(here, LOW, "stove"))["candidates"]
    assert (row["promoted"], row["why"]) == (True, [])


async def test_recalls_are_bounded_and_a_person_is_forgotten(tmp_path: Path, here: Ground) -> None:
    for at in range(recalls.QUERIES + 3):
        await found(here, STOVE, f"q{at}")
    one = (await here.db.read(partial(recalls.every, agent="main")))[digest(STOVE)]
    assert (one.count, len(one.queries)) == (recalls.QUERIES + 3, recalls.QUERIES)
    other = "<!-- from a conversation with irc:a:bob -->"
    note(tmp_path, DAY, f"{other}\n- {STOVE}\n<!-- from a conversation with irc:a:ann -->\n- {ROOF}\n")
    await dreaming.dream(here, LOW)
    for dry, left in ((True, 2), (False, 1)):
        assert await here.db.write(partial(recalls.forgotten, who=Person("irc", "bob"), dry=dry)) == 1
        assert len((await dreaming.listed(here))["dreams"][0]["lines"]) == left
    assert await here.db.write(partial(recalls.forgotten, who=Person("irc", "ann"), dry=False)) == 1
    assert (await dreaming.listed(here))["dreams"] == []
