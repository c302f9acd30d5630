"""An engine that fails is set aside; no turn ends for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from garra.core.errors import NotFound
from garra.core.ids import SessionId
from garra.core.messages import Assistant, Message, Text, User
from garra.domains.context.host import LIMITS, STRIKES, Host, Seat
from garra.sdk.context import Asked, Assembled, Chat, ContextEngine
from garra.testing.context import CHAT, FakePages, ToyEngine, asked

SHORT = {**LIMITS, "assemble": 0.01}
TALK: tuple[Message, ...] = (User((Text("a"),), 1), Assistant((Text("b"),), 2), User((Text("c"),), 3))


class Office:
    """A host, its engines by name, and what the owner was told."""

    def __init__(self, limits: Mapping[str, float] = LIMITS, **engines: ContextEngine) -> None:
        self.told: list[str] = []
        self.made: list[str] = []

        def make(name: str, _settings: Mapping[str, Any]) -> ContextEngine:
            self.made.append(name)
            if name not in engines:
                raise NotFound(f"no context engine is called {name!r}; there is toy")
            return engines[name]

        self.host = Host(make, limits)
        self.host.tellers.append(self.told.append)

    async def seat(self, name: str = "toy", **settings: Any) -> Seat:
        found = await self.host.seat(name, settings)
        assert found is not None
        return found


@pytest.mark.req("SESS-19")
async def test_three_failures_in_a_row_set_it_aside_and_everybody_is_served() -> None:
    toy = ToyEngine(fails={"assemble"})
    office = Office(toy=toy)
    seat = await office.seat()
    other = replace(CHAT, session_id=SessionId("s2"))
    for number in range(STRIKES + 2):
        chat = other if number % 2 else CHAT
        assert await seat.assemble(chat, asked(*TALK)) == Assembled(TALK)
    assert toy.heard == ["assemble"] * STRIKES
    [line] = office.told
    assert "context engine toy is set aside" in line
    assert "RuntimeError: the toy's assemble is broken" in line
    assert "plugins.slots.contextEngine" in line
    assert await office.host.seat("toy", {}) is None
    assert not seat.owns_compaction


async def test_a_success_between_failures_counts() -> None:
    toy = ToyEngine(fails={"assemble"})
    seat = await Office(toy=toy).seat()
    for fails in (True, True, False, True, True):
        toy.fails = {"assemble"} if fails else set()
        await seat.assemble(CHAT, asked(*TALK))
    assert not seat.aside


async def test_whoever_takes_too_long_has_failed() -> None:
    office = Office(SHORT, toy=ToyEngine(waits=5))
    seat = await office.seat()
    for _ in range(STRIKES):
        assert (await seat.assemble(CHAT, asked(*TALK))).messages == TALK
    assert "it took more than 0.01 s" in office.told[0]


class Wrong(ToyEngine):
    """Gives back what cannot be sent."""

    answer: Any = None

    async def assemble(self, chat: Chat, asked: Asked) -> Assembled:
        found: Assembled = self.answer
        return found


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Assembled([TALK[-1]]),  # type: ignore[arg-type]
        Assembled(("words", TALK[-1])),  # type: ignore[arg-type]
        Assembled(TALK[:-1]),
        Assembled((TALK[0], User((Text("c"),), 3))),
        Assembled(()),
    ],
)
async def test_what_cannot_be_sent_is_a_failure(answer: Any) -> None:
    wrong = Wrong()
    wrong.answer = answer
    office = Office(toy=wrong)
    seat = await office.seat()
    for _ in range(STRIKES):
        assert (await seat.assemble(CHAT, asked(*TALK))).messages == TALK
    assert len(office.told) == 1


async def test_an_engine_that_is_not_there_is_told_once_and_its_settings_give_it_another_chance() -> None:
    office = Office(toy=ToyEngine())
    assert await office.host.seat("lossless", {}) is None
    assert await office.host.seat("lossless", {}) is None
    assert len(office.told) == 1
    assert "no context engine is called 'lossless'; there is toy" in office.told[0]
    assert (await office.seat("toy")).name == "toy"
    assert await office.seat("toy") is await office.seat("toy")
    assert await office.seat("toy", depth=2) is not None
    assert office.made == ["lossless", "toy", "toy"]


@pytest.mark.req("SESS-19")
async def test_it_hears_of_each_message_once_and_of_a_changed_past_anew() -> None:
    toy = ToyEngine()
    seat = await Office(toy=toy).seat()
    await seat.met(CHAT, ())
    await seat.met(CHAT, TALK[:1])
    await seat.met(CHAT, TALK)
    await seat.met(CHAT, TALK)
    assert [each for each in toy.heard if each.startswith("knows")] == ["knows 1", "knows 2", "knows 3"]
    assert toy.heard.count("bootstrap") == 1
    read_again = (*TALK[:2], User((Text("c"),), 3), User((Text("d"),), 4))
    await seat.met(CHAT, read_again)
    assert toy.heard[-2:] == ["ingest", "knows 4"]
    await seat.met(CHAT, TALK[2:])
    assert toy.heard[-2:] == ["bootstrap", "knows 3"]


@pytest.mark.req("SESS-13")
async def test_compaction_is_its_own_only_while_it_works() -> None:
    toy = ToyEngine(owns_compaction=True)
    seat = await Office(toy=toy).seat()
    assert seat.owns_compaction
    done = await seat.compact(CHAT, asked(*TALK), FakePages(*TALK))
    assert done is not None
    assert done.line == "Summed up by the toy."
    toy.fails = {"compact", "maintain"}
    for _ in range(STRIKES):
        await seat.maintain(CHAT, FakePages())
        assert await seat.compact(CHAT, asked(*TALK), FakePages(*TALK)) is None or seat.aside
    assert seat.aside
    assert not seat.owns_compaction
