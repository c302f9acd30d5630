"""What is kept of a run: its steps in time, no words, and of all runs the newest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from garra.core.errors import Failure, FailureKind
from garra.core.events import (
    Compacting,
    PersonAnswered,
    PersonAsked,
    RunBody,
    RunEnded,
    RunEvent,
    RunPhase,
    ToolEnded,
    ToolStarted,
)
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.core.messages import Text, ToolCall, ToolResult
from garra.core.trace import MOST, Request
from garra.io.store.db import Database
from garra.runs import recorder
from garra.runs.recorder import Recorder
from garra.runs.run import Run, Turn

SECRET = "words-of-a-person"


class Rig:
    """A recorder and the runs it hears of."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.runs: dict[str, Run] = {}
        self.recorder = Recorder(db, self.runs.get)

    def begin(self, name: str) -> Run:
        turn = Turn(RunId(name), SessionKey("agent:main:main"), AgentId("main"), SECRET)
        return self.runs.setdefault(name, Run(turn, SessionId("s"), 100))

    def tell(self, name: str, *bodies: RunBody, at: int = 110) -> None:
        run = self.begin(name)
        for number, body in enumerate(bodies):
            event = RunEvent(run.run_id, run.session_key, run.session_id, run.agent_id, number, at + number, body)
            self.recorder.heard(event)

    async def stored(self) -> list[tuple[str, int]]:
        """(run, size) of each row, the oldest first."""
        self.recorder.flush()
        query = "SELECT run, length(body) FROM traces ORDER BY seq"
        await self.db.write(lambda _: None)
        return await self.db.read(lambda c: c.execute(query).fetchall())


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    db = Database(tmp_path / "state.db")
    await db.open()
    made = Rig(db)
    yield made
    made.recorder.flush()
    await db.close()


def call(name: str) -> ToolCall:
    return ToolCall(name, "exec", {"command": SECRET})


def result(name: str, *, error: bool = False) -> ToolResult:
    return ToolResult(name, "exec", (Text(SECRET),), 1, is_error=error)


END = RunEnded("ok", SECRET, None, None, 100, 190)


async def test_steps_are_noted_with_their_times_and_without_words(rig: Rig) -> None:
    rig.begin("r").trace.requests.append(Request(111, 112, "p", "m", "success"))
    rig.tell(
        "r", RunPhase("preparing_workspace"), ToolStarted(call("a")), PersonAsked("q", "a", "exec", SECRET),
        PersonAnswered("q", "a", "exec", SECRET, allowed=False), ToolEnded(call("a"), result("a", error=True), 3),
        ToolEnded(call("unheard-of"), result("x"), 1), Compacting("start", "overflow"),
        Compacting("end", "overflow", "cut", 900, 90), Compacting("end", "manual"), END,
    )  # fmt: skip
    kept = rig.recorder.now()[0]
    marks = kept.marks
    assert (kept.run, kept.started, kept.ended, kept.ending) == ("r", 100, 119, "ok")
    assert (marks.tools[0].began, marks.tools[0].ended, marks.tools[0].result) == (111, 114, "error")
    assert (marks.asked[0].ended, marks.asked[0].result) == (113, "refused")
    assert (marks.compactions[0].result, marks.compactions[0].after) == ("cut", 90)
    assert marks.requests[0].model == "m"
    assert SECRET.encode() not in msgspec.json.encode(marks)
    assert [name for name, _ in await rig.stored()] == ["r"]
    assert rig.recorder.now() == []


async def test_how_it_ended(rig: Rig) -> None:
    told: list[str] = []
    rig.recorder.tellers.append(
        lambda kept: told.append(f"{kept.run} {kept.ending} {kept.marks.failure} {kept.led_by}")
    )
    failure = Failure(FailureKind.RATE_LIMIT, SECRET)
    rig.tell("a", RunEnded("error", SECRET, None, failure, 1, 2))
    rig.begin("b").led_by = RunId("a")
    rig.tell("b", RunEnded("ok", "", None, None, 1, 2, silent=True))
    assert told == ["a error rate_limit ", "b silent  a"]


async def test_a_run_under_way_is_told_of_too(rig: Rig) -> None:
    rig.tell("r", RunPhase("preparing_workspace"))
    found = rig.recorder.now()
    assert [(each.run, each.ended, each.ending) for each in found] == [("r", 0, "")]
    assert await rig.stored() == []


async def test_there_is_an_end_to_what_is_kept(rig: Rig) -> None:
    rig.tell("long", *(ToolStarted(call(str(number))) for number in range(MOST + 5)), END)
    assert rig.recorder.now()[0].marks.left_out == 5
    old = recorder.KEPT + 10
    for number in range(old):
        rig.tell(f"r{number}", END)
    found = await rig.stored()
    assert len(found) == recorder.KEPT
    assert found[-1][0] == f"r{old - 1}"
    assert found[0][0] == "r10"


async def test_a_store_that_refuses_costs_the_trace_alone(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    await rig.db.close()
    rig.tell("r", END)
    rig.recorder.flush()
    await asyncio.sleep(0)
    assert "could not be kept" in caplog.text
    rig.recorder.flush()
