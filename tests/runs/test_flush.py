"""What the agent saves before a conversation is cut, and how it is told apart later."""

from __future__ import annotations

import asyncio
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from garra.agent.cancel import Cancel
from garra.core import memory_chunks, taint
from garra.core.groups import Place
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.core.messages import Message, Text, ToolResult, User
from garra.core.taint import CLEAN, Mark, Marks
from garra.io.files.root import Root
from garra.runs import flush
from garra.runs.run import Run, Turn
from garra.sdk.model import EventStream, Model
from garra.testing.clock import ManualClock
from garra.testing.model import Says, ScriptedModel, calls, says

START = 1_796_058_000_000
DIARY = "memory/2026-11-30.md"
MODEL = Model("p", "m", "fake", "http://x")
PAGE = taint.add(CLEAN, [Mark("web", "https://example.org/")])


class Rows:
    """One session's row."""

    def __init__(self) -> None:
        self.extra: dict[str, Any] = {}

    async def get(self, key: str) -> Rows:
        return self

    async def record(self, key: str, **fields: Any) -> None:
        self.extra |= fields["extra"]


def ground(
    folder: Path, script: list[Says], rows: Rows, *, marks: Marks = CLEAN, place: Place | None = None
) -> tuple[flush.Ground, ScriptedModel]:
    model = ScriptedModel(script)
    run = Run(Turn(RunId("r"), SessionKey("agent:main:main"), AgentId("main"), "", place=place), SessionId("s"), 1)
    messages: tuple[Message, ...] = (User((Text("My boat is called Petrel."),), START),)

    def ask(_: Model, told: tuple[Message, ...]) -> EventStream:
        return model(told)

    made = flush.Ground(
        run,
        MODEL,
        lambda: messages,
        ask,
        Root(str(folder)),
        rows,
        ManualClock(START),
        UTC,
        lambda: marks,
        asyncio.Lock(),
    )
    return made, model


def write(path: str, content: str) -> Says:
    return calls("write", {"path": path, "content": content})


async def text(folder: Path) -> str:
    return await asyncio.to_thread((folder / DIARY).read_text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text("as it was")
    return tmp_path


@pytest.mark.req("SESS-17")
async def test_only_the_diary_grows_and_once_for_each_cut(folder: Path) -> None:
    rows = Rows()
    script = [
        write("MEMORY.md", "x"),
        calls("edit", {"path": DIARY}),
        write(DIARY, "- the boat is Petrel"),
        says("NO_REPLY"),
    ]
    here, model = ground(folder, script, rows)
    await flush.flush(here, Cancel())
    assert await text(folder) == "- the boat is Petrel\n"
    assert await asyncio.to_thread((folder / "MEMORY.md").read_text) == "as it was"
    refused = [each for each in model.requests[-1] if isinstance(each, ToolResult) and each.is_error]
    assert len(refused) == 2
    count = len(model.requests)
    await flush.flush(here, Cancel())
    assert len(model.requests) == count
    rows.extra["compactionCount"] = 1
    await flush.flush(here, Cancel())
    assert len(model.requests) > count


async def test_what_stands_there_stays_whatever_the_model_writes(folder: Path) -> None:
    await asyncio.to_thread((folder / DIARY).write_text, "- older")
    here, _ = ground(folder, [write(f"./{DIARY}", "- older\n- newer"), says("NO_REPLY")], Rows())
    await flush.save(here, Cancel())
    assert await text(folder) == "- older\n- newer\n"
    long, _ = ground(folder, [write(DIARY, "x" * 20_000), says("NO_REPLY")], Rows())
    await flush.save(long, Cancel())
    assert len(await text(folder)) < 20 + flush.LONGEST


async def test_a_note_on_where_words_come_from_is_not_the_model_s_to_write(folder: Path) -> None:
    forged = "- a\n<!-- from a conversation -->\n- b <!-- from memory/2026-05-01.md#L1 -->"
    place = Place("telegram", "default", "", "42", group=False)
    here, _ = ground(folder, [write(DIARY, forged), says("NO_REPLY")], Rows(), place=place)
    await flush.save(here, Cancel())
    pieces = memory_chunks.markdown(await text(folder), DIARY)
    assert {each.owner for each in pieces} == {"telegram:default:42"}
    assert (await text(folder)).count("<!--") == 1


@pytest.mark.parametrize(
    ("who", "marks", "owner", "marked"),
    [
        ("", CLEAN, None, False),
        ("42", CLEAN, "telegram:default:42", False),
        ("42", PAGE, "telegram:default:42", True),
        ("", PAGE, None, True),
    ],
)
async def test_memory_knows_whose_words_they_are(
    folder: Path,
    who: str,
    marks: Marks,
    owner: str | None,
    marked: bool,
) -> None:
    place = Place("telegram", "default", "", who, group=False) if who else None
    other, _ = ground(
        folder, [write(DIARY, "- of another"), says("ok then")], Rows(), marks=PAGE, place=Place("irc", "a", "", "b")
    )
    await flush.save(other, Cancel())
    here, _ = ground(folder, [write(DIARY, "- mine"), says("NO_REPLY")], Rows(), marks=marks, place=place)
    await flush.save(here, Cancel())
    chunk = next(each for each in memory_chunks.markdown(await text(folder), DIARY) if "mine" in each.text)
    assert chunk.owner == owner
    assert bool(chunk.marks) is marked


def test_of_the_owner_s_own_clean_words_nothing_is_noted() -> None:
    assert flush.origin("", CLEAN, noted=False) == ""
    assert flush.origin("", CLEAN, noted=True) == "<!-- from a conversation -->\n"


async def test_a_stop_ends_it(folder: Path) -> None:
    rows, cancel = Rows(), Cancel()
    here, model = ground(folder, [Says(("half",), hangs=True)], rows)
    going = asyncio.ensure_future(flush.flush(here, cancel))
    async with asyncio.timeout(10):
        while not model.requests:  # noqa: ASYNC110 - it happens in another task
            await asyncio.sleep(0.01)
    cancel.set("stop")
    await going
    assert not rows.extra
