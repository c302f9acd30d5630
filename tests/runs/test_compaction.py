"""Histories kept within their window, on real transcripts and with a model that is scripted."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.config.sections import Config
from garra.core.blots import NONE
from garra.core.errors import Failure, FailureKind, UserError
from garra.core.events import Compacting, RunBody
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.messages import Assistant, Message, Text, ToolCall, ToolResult, Usage, User
from garra.core.pruning import Settings
from garra.core.taint import Mark, of, stored
from garra.core.value import replace
from garra.domains.sessions.store import Sessions
from garra.domains.sessions.transcript import Transcript
from garra.io.store.db import Database
from garra.runs.compaction import DROPPED, Case, Compactor, Gauge, Ports
from garra.runs.purse import NO_PURSE
from garra.runs.run import Run, Turn
from garra.runs.view import View
from garra.sdk.model import EventStream, Model, ModelRequest
from garra.testing.clock import ManualClock
from garra.testing.model import Says, ScriptedModel, says

KEY = SessionKey("agent:main:main")
START = 1_796_044_636_255
MODEL = Model("p", "m", "fake", "http://x", context_window=16_000)
OVERFLOW = Failure(FailureKind.OVERFLOW, "the conversation is larger than the model's window", provider="p", model="m")
GOOD = "## Goal\nA boat named Petrel is to be bought."


class Summarising:
    """A model that sums up as its script says, and remembers what it was given to read."""

    def __init__(self, script: list[Says]) -> None:
        self.script = script
        self.asked: list[str] = []

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model:
        raise UserError(f"no such model {ref}")

    def stream(self, request: ModelRequest) -> EventStream:
        said = request.messages[0]
        assert isinstance(said, User)
        self.asked.append(said.text)
        return ScriptedModel([self.script.pop(0) if self.script else says(GOOD)])(request.messages)


class Place:
    """One session with what keeps it small."""

    def __init__(self, sessions: Sessions, transcript: Transcript, models: Summarising, config: Config) -> None:
        self.sessions, self.transcript, self.models = sessions, transcript, models
        self.told: list[RunBody] = []
        clock = ManualClock(START + 1_000_000)
        self.compactor = Compactor(Ports(models, sessions, lambda: config, clock, lambda: NONE, NO_PURSE))

    def gauge(self, *, owned: bool = False, focus: str = "", view: View | None = None) -> Gauge:
        run = Run(Turn(RunId("r"), KEY, AgentId("main"), focus), self.transcript.session_id, 1)
        self.run = run
        case = Case(run, self.transcript, (MODEL,), lambda _, body: self.told.append(body), 400, owned=owned)
        return self.compactor.gauge(case if view is None else replace(case, pruned=view.steps))

    async def say(self, *messages: Message) -> None:
        for message in messages:
            await self.transcript.append(message)


@asynccontextmanager
async def place(root: Path, *script: Says, **compaction: Any) -> AsyncIterator[Place]:
    config = Config.model_validate({"agents": {"defaults": {"compaction": compaction}}})
    db, ids = Database(root / "state.db"), itertools.count()
    sessions = Sessions(db, root / "agents", ManualClock(START), lambda: f"id-{next(ids)}")
    try:
        await sessions.ensure(KEY, agent_id="main", cwd="/w")
        yield Place(sessions, await sessions.transcript(KEY), Summarising(list(script)), config)
    finally:
        await sessions.close()
        await db.close()


async def until(told: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not told():  # noqa: ASYNC110 - it happens in another task
            await asyncio.sleep(0.01)


def turn(number: int, size: int = 4_000) -> tuple[Message, ...]:
    return User((Text(f"turn {number} " + "w" * size),), START), Assistant((Text(f"answer {number}"),), START)


async def long(here: Place, turns: int = 16) -> tuple[Message, ...]:
    for number in range(turns):
        await here.say(*turn(number))
    return here.transcript.messages()


async def test_what_fits_is_left_alone(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        messages = await long(here, 2)
        assert await here.gauge().before(messages) is messages
        assert not here.told


@pytest.mark.req("SESS-06", "SESS-10")
async def test_what_is_too_large_is_summed_up_once(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        page = Mark("web", "https://example.org/")
        secret = ToolResult("c", "exec", (Text("ok"),), START, details={"key": "hunter2"}, meta=stored([page]))
        await here.say(User((Text("go"),), START), Assistant((ToolCall("c", "exec", {}),), START), secret)
        messages = await long(here)
        gauge = here.gauge()
        shown = await gauge.before(messages)
        assert isinstance(shown[0], User)
        assert "Petrel" in shown[0].text
        assert of(shown[0].meta) == (page,)
        assert shown[-1] == messages[-1]
        assert len(here.models.asked) <= 3
        assert "hunter2" not in "".join(here.models.asked)
        more = (*messages, User((Text("more"),), START))
        again = await gauge.before(more)
        assert again == (*shown, more[-1])
        assert [type(each) for each in here.told] == [Compacting, Compacting]
        session = await here.sessions.need(KEY)
        assert session.extra["compactionCount"] == 1
        assert session.totals is None


@pytest.mark.parametrize("bad", [Says(fails=Failure(FailureKind.SERVER, "broken")), says(""), says("<html>no</html>")])
async def test_without_a_summary_nothing_is_lost_and_the_oldest_goes_with_a_note(tmp_path: Path, bad: Says) -> None:
    async with place(tmp_path, bad, bad, bad) as here:
        messages = await long(here)
        before = [entry.raw for entry in here.transcript.every()]
        shown = await here.gauge().before(messages)
        assert isinstance(shown[0], User)
        assert "left out here without a summary" in shown[0].text
        assert shown[-2:] == messages[-2:]
        assert [entry.raw for entry in here.transcript.every()][: len(before)] == before
        assert here.run.notices == [DROPPED]


async def test_an_earlier_summary_is_carried_on_even_where_the_next_fails(tmp_path: Path) -> None:
    failed = Says(fails=Failure(FailureKind.SERVER, "broken"))
    async with place(tmp_path) as here:
        await here.gauge().before(await long(here))
        count = len(here.models.asked)
        here.models.script = [failed] * 3
        await here.gauge().before(await long(here))
        assert "<previous-summary>" in here.models.asked[count]
        first = here.transcript.messages()[0]
        assert isinstance(first, User)
        assert "Petrel" in first.text
        assert "left out here" in first.text


async def test_a_stop_leaves_it_as_it_was(tmp_path: Path) -> None:
    async with place(tmp_path, Says(("half",), hangs=True)) as here:
        messages = await long(here)
        count = len(here.transcript.every())
        gauge = here.gauge()
        going = asyncio.ensure_future(gauge.before(messages))
        await until(lambda: bool(here.models.asked))
        here.run.cancel.set("stop")
        assert await going == messages
        assert len(here.transcript.every()) == count


@pytest.mark.req("SESS-12")
async def test_a_refusal_is_rescued_twice_at_the_most(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        messages = await long(here, 6)
        gauge = here.gauge()
        assert await gauge.before(messages) is messages
        assert await gauge.rescue(OVERFLOW) is None
        shown = await gauge.before(messages)
        assert len(shown) < len(messages)
        second = await gauge.rescue(OVERFLOW)
        if second is None:
            second = await gauge.rescue(OVERFLOW)
        assert second is not None
        assert "did not fit" in second.message
        other = Failure(FailureKind.AUTH, "no")
        assert await gauge.rescue(other) is other


async def test_a_window_that_a_provider_names_is_remembered(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        messages = await long(here, 6)
        gauge = here.gauge()
        await gauge.before(messages)
        told = Failure(FailureKind.OVERFLOW, "maximum context length is 5000 tokens", provider="p", model="m")
        assert await gauge.rescue(told) is None
        assert here.compactor.window(MODEL) == 5_000
        assert here.compactor.room(MODEL, 0).limits.limit == 3_750


async def test_an_engine_that_owns_compaction_is_left_to_it(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        messages = await long(here)
        gauge = here.gauge(owned=True)
        assert await gauge.before(messages) is messages
        assert await gauge.rescue(OVERFLOW) is OVERFLOW


async def test_switched_off_only_a_refusal_counts(tmp_path: Path) -> None:
    async with place(tmp_path, enabled=False) as here:
        messages = await long(here)
        gauge = here.gauge()
        assert await gauge.before(messages) is messages
        assert await gauge.rescue(OVERFLOW) is None


async def test_old_results_are_trimmed_without_a_model(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await here.say(User((Text("go"),), START))
        for at in range(7):
            call = Assistant((ToolCall(f"c{at}", "read", {}),), START)
            await here.say(call, ToolResult(f"c{at}", "read", (Text("r" * 8_000),), START))
        messages = here.transcript.messages()
        shown = await here.gauge().before(messages)
        assert not here.models.asked
        assert len(shown) == len(messages)
        assert isinstance(shown[2], ToolResult)
        assert "characters left out here" in shown[2].text
        assert shown[-1] == messages[-1]


async def test_what_is_sent_in_brief_after_a_pause_is_not_summed_up_as_well(tmp_path: Path) -> None:
    """The window is full of an old result that the next request holds in brief."""
    async with place(tmp_path) as here:
        await here.say(User((Text("go"),), START), Assistant((ToolCall("c", "read", {}),), START))
        await here.say(ToolResult("c", "read", (Text("r" * 60_000),), START))
        for _ in range(4):
            await here.say(Assistant((Text("it says r"),), START))
        await here.say(User((Text("and now?"),), START + 3_600_000))
        messages = here.transcript.messages()
        view = View(Settings())
        assert await here.gauge(view=view).before(messages) == messages
        assert not here.told
        await here.gauge().before(messages)
        assert here.told, "as it is stored it is too large"


async def test_by_hand_it_is_summed_up_however_small(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await long(here, 4)
        outcome = await here.gauge().manual("the boat")
        assert outcome.step == "cut"
        assert outcome.after < outcome.before
        assert "<focus>\nthe boat\n</focus>" in here.models.asked[0]
        with pytest.raises(UserError, match="short"):
            await here.gauge().manual()


async def test_by_hand_without_a_summary_it_stays_as_it_was(tmp_path: Path) -> None:
    async with place(tmp_path, says("")) as here:
        await long(here, 4)
        count = len(here.transcript.every())
        with pytest.raises(UserError, match="as it was"):
            await here.gauge().manual()
        assert len(here.transcript.every()) == count


async def test_the_last_so_many_messages_alone(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        messages = await long(here, 4)
        assert await here.gauge().keep_last(2) == 2
        assert here.transcript.messages()[1:] == messages[-2:]
        assert await here.gauge().keep_last(50) == 2


async def test_what_a_provider_counts_corrects_the_measure(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        usage = Usage(input=13_000, output=10)
        await here.say(
            User((Text("w" * 9_000),), START), Assistant((Text("a"),), START, provider="p", model="m", usage=usage)
        )
        await here.say(
            User((Text("old " * 900),), START), Assistant((Text("b"),), START, provider="p", model="m", usage=usage)
        )
        messages = here.transcript.messages()
        await here.gauge().before(messages)
        assert [entry for entry in here.transcript.entries() if entry.type == "compaction"]
        assert here.compactor.room(MODEL, 0).ratio > 2
