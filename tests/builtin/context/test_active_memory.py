"""What is remembered is told with the turn it is of use to, and nobody else's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from garra.builtin.context.active_memory.engine import HITS, ActiveMemory
from garra.core.ids import SessionId
from garra.core.messages import Assistant, Message, Text, User
from garra.core.taint import Mark
from garra.sdk.context import Addition, Chat, Recalled
from garra.testing.clock import ManualClock
from garra.testing.context import CHAT, FakeRecall, asked

FIGS = Recalled("Ana likes figs", "MEMORY.md", 3, 0.9)
WEAK = Recalled("Ana was in Ulm", "memory/2026-05-02.md", 4, 0.3, (Mark("web", "https://example.org"),))
TALK: tuple[Message, ...] = (
    User((Text("hello there"),), 1),
    Assistant((Text("good day"),), 2),
    User((Text("more of this"),), 3),
    Assistant((Text("here it is"),), 4),
)


class Desk:
    """The engine with what it is handed."""

    def __init__(self, settings: Mapping[str, Any] | None = None, *hits: Recalled) -> None:
        self.recall, self.clock = FakeRecall(hits or (FIGS, WEAK)), ManualClock()
        self.engine = ActiveMemory(settings or {}, recall=self.recall, clock=self.clock)

    async def ask(self, said: str, chat: Chat = CHAT, **more: Any) -> tuple[Addition, ...]:
        request = asked(*TALK, User((Text(said),), 9), said=said)
        got = await self.engine.assemble(chat, replace(request, **more))
        assert got.messages == request.messages
        return got.additions


@pytest.mark.req("SESS-20")
async def test_what_fits_well_is_told_with_where_it_stands() -> None:
    desk = Desk()
    [one] = await desk.ask("a present for Ana")
    assert (one.text, one.source, one.marks) == ("Ana likes figs", "MEMORY.md#L3", ())


async def test_who_asks_for_the_past_is_told_more_and_marks_stay() -> None:
    for said in ("what did we say yesterday about her town?", "还记得她住在哪里吗"):
        figs, town = await Desk().ask(said)
        assert figs.text == "Ana likes figs"
        assert (town.source, town.marks) == ("memory/2026-05-02.md#L4", WEAK.marks)


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"mode": "off"}, 0),
        ({"mode": "always"}, 2),
        ({"promptStyle": "recall-heavy", "mode": "always"}, 2),
        ({"promptStyle": "strict", "mode": "always"}, 1),
        ({"agents": ["Main"]}, 1),
        ({"agents": ["other"]}, 0),
        ({"allowedChatTypes": ["group"]}, 0),
        ({"allowedChatIds": ["77"]}, 0),
    ],
)
async def test_settings(settings: dict[str, Any], count: int) -> None:
    assert len(await Desk(settings).ask("a present for Ana")) == count


async def test_groups_and_single_chats() -> None:
    group = replace(CHAT, kind="group", place="-500")
    assert not await Desk().ask("a present", group)
    kinds = {"allowedChatTypes": ["direct", "group"]}
    assert await Desk(kinds).ask("a present", group)
    assert await Desk({**kinds, "allowedChatIds": ["-500"]}).ask("a present", group)
    assert not await Desk({**kinds, "deniedChatIds": ["-500"]}).ask("a present", group)


async def test_nobody_waits_for_it_nothing_is_searched() -> None:
    desk = Desk()
    assert not await desk.ask("a present", interactive=False)
    assert not await desk.ask("  ")
    assert not desk.recall.queries


async def test_whose_memory_is_searched() -> None:
    desk = Desk()
    await desk.ask("a present", replace(CHAT, owner="telegram:main:7"))
    assert desk.recall.queries[0][1:] == ("main", "telegram:main:7")


async def test_the_query_has_as_much_as_is_wanted() -> None:
    for mode, expected in (
        ("message", "a present"),
        ("recent", "hello there\nmore of this\nhere it is\na present"),
        ("full", "hello there\ngood day\nmore of this\nhere it is\na present"),
    ):
        desk = Desk({"queryMode": mode})
        await desk.ask("a present")
        assert desk.recall.queries[0][0] == expected
    alone = Desk()
    await alone.engine.assemble(CHAT, asked(User((Text("x"),), 1), said="x"))
    assert alone.recall.queries[0][0] == "x"
    long = Desk({"queryMode": "full"})
    many = tuple(User((Text("word " * 50),), at) for at in range(9))
    await long.engine.assemble(CHAT, asked(*many, said="x"))
    assert len(long.recall.queries[0][0]) <= 800


async def test_a_turn_is_told_the_same_again_without_another_search() -> None:
    desk = Desk()
    first = await desk.ask("a present")
    assert await desk.ask("a present", first=False) == first
    assert await desk.ask("a present", replace(CHAT, session_id=SessionId("s2"))) == first
    assert len(desk.recall.queries) == 1
    await desk.clock.advance(16)
    assert await desk.ask("a present") == first
    assert len(desk.recall.queries) == 2


async def test_what_was_just_said_is_not_told_and_much_is_cut() -> None:
    assert not await Desk({}, Recalled("here it is", "MEMORY.md", 1, 0.9)).ask("show me")
    many = [Recalled(f"fact {number} " + "x" * 400, "MEMORY.md", number, 0.9) for number in range(9)]
    told = await Desk({}, *many).ask("show me")
    assert len(told) == HITS
    assert all(len(each.text) <= 220 for each in told)
    assert told[0].text.endswith("…")


async def test_an_index_that_is_slow_rests_and_one_that_is_broken_is_no_fault() -> None:
    desk = Desk({"timeoutMs": 250})
    desk.recall.waits = 5
    for number in range(4):
        assert not await desk.ask(f"a present {number}")
    assert len(desk.recall.queries) == 3
    desk.recall.waits = 0
    await desk.clock.advance(61)
    assert await desk.ask("a present for her")
    desk.recall.broken = True
    assert not await desk.ask("another present")
