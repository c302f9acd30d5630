"""What every context engine owes, whatever it does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from garra.builtin.context.active_memory.engine import ActiveMemory
from garra.core.messages import Assistant, Message, Text, ToolCall, ToolResult, User
from garra.domains.context.host import Host, Seat
from garra.sdk.context import ContextEngine, Recalled, Whole
from garra.testing.clock import ManualClock
from garra.testing.context import CHAT, FakePages, FakeRecall, ToyEngine, asked

MADE: dict[str, Callable[[], ContextEngine]] = {
    "legacy": Whole,
    "toy": ToyEngine,
    "toy that compacts": lambda: ToyEngine(owns_compaction=True, keep=2),
    "active-memory": lambda: ActiveMemory(
        {"mode": "always"},
        recall=FakeRecall((Recalled("Ana likes figs", "MEMORY.md", 3, 0.9),)),
        clock=ManualClock(),
    ),
    "active-memory without memory": lambda: ActiveMemory({}, recall=FakeRecall(broken=True), clock=ManualClock()),
}

TURN: tuple[Message, ...] = (
    User((Text("hello"),), 1),
    Assistant((Text("hi"),), 2),
    User((Text("what is there?"),), 3),
    Assistant((ToolCall("c", "ls", {}),), 4, stop="toolUse"),
    ToolResult("c", "ls", (Text("a b"),), 5),
)


@pytest.fixture(params=MADE)
def engine(request: pytest.FixtureRequest) -> ContextEngine:
    return MADE[request.param]()


async def seated(engine: ContextEngine) -> tuple[Seat, list[str]]:
    told: list[str] = []
    host = Host(lambda _name, _settings: engine)
    host.tellers.append(told.append)
    seat = await host.seat("it", {})
    assert seat is not None
    return seat, told


@pytest.mark.req("SESS-19")
async def test_it_says_what_it_is(engine: ContextEngine) -> None:
    assert engine.id
    assert isinstance(engine.owns_compaction, bool)


@pytest.mark.req("SESS-19")
async def test_the_newest_turn_is_sent_as_it_is(engine: ContextEngine) -> None:
    seat, told = await seated(engine)
    for end in (1, 3, 5):
        messages = TURN[:end]
        await seat.met(CHAT, messages)
        got = await seat.assemble(CHAT, asked(*messages, said="what is there?", first=end != 5))
        assert got.messages[-1] is messages[-1]
        assert all(one in messages for one in got.messages)
        assert all(addition.name and addition.text for addition in got.additions)
    assert not told
    assert not seat.aside


async def test_nothing_that_is_given_is_changed(engine: ContextEngine) -> None:
    before = repr(TURN)
    seat, _ = await seated(engine)
    await seat.met(CHAT, TURN)
    await seat.assemble(CHAT, asked(*TURN, said="what is there?"))
    await seat.maintain(CHAT, FakePages(*TURN))
    assert repr(TURN) == before


async def test_the_same_question_gets_the_same_answer(engine: ContextEngine) -> None:
    seat, _ = await seated(engine)
    await seat.met(CHAT, TURN[:3])
    one = await seat.assemble(CHAT, asked(*TURN[:3], said="what is there?"))
    other = await seat.assemble(CHAT, asked(*TURN[:3], said="what is there?", first=False))
    assert one == other


@pytest.mark.req("SESS-13")
async def test_who_owns_compaction_compacts_and_others_may_leave_it(engine: ContextEngine) -> None:
    seat, _ = await seated(engine)
    pages = FakePages(*TURN)
    done = await seat.compact(CHAT, asked(*TURN), pages)
    if seat.owns_compaction:
        assert done is not None
        assert done.compacted
        assert pages.summaries
    else:
        assert done is None
        assert not pages.summaries


async def test_an_empty_conversation_is_no_fault(engine: ContextEngine) -> None:
    seat, told = await seated(engine)
    await seat.met(CHAT, ())
    got = await seat.assemble(CHAT, asked())
    await seat.maintain(CHAT, FakePages())
    assert got.messages == ()
    assert not told
