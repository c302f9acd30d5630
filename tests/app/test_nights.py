"""When a gateway dreams by itself: at its times, where it is switched on, and nothing is loaded before."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from garra.app.dreaming import shown
from garra.app.house import House
from garra.app.nights import EVERY_S, FIRST_S, Nights
from garra.config.sections import Config
from garra.config.sections.dreaming import read
from garra.core.errors import Unavailable, UserError
from garra.io.tasks import Tasks
from garra.testing.clock import ManualClock


class Dreamt:
    def __init__(self) -> None:
        self.at: list[tuple[int, int]] = []
        self.agents: list[str] = []
        self.broken = False

    async def due(self, looked: int, now: int) -> bool:
        if self.broken:
            raise UserError("no time")
        self.at.append((looked, now))
        return len(self.at) == 2

    async def dream(self, agent: str, params: dict[str, Any]) -> dict[str, Any]:
        self.agents.append(agent)
        return {"dreams": [{"id": "d", "state": "proposed"}], "candidates": 1}


def house(config: Config, clock: ManualClock, *, on: bool = True) -> House:
    def memory() -> None:
        if not on:
            raise Unavailable("memory is switched off")

    recalls = SimpleNamespace(on=on, memory=memory)
    return cast(House, SimpleNamespace(live=SimpleNamespace(config=config), clock=clock, recalls=recalls))


def config(**dreaming: Any) -> Config:
    return Config.model_validate({"plugins": {"entries": {"memory-core": {"config": {"dreaming": dreaming}}}}})


async def test_each_agent_s_memory_is_looked_through_when_it_is_time() -> None:
    clock, made, dreamt = ManualClock(), [], Dreamt()

    def make(_: House) -> Any:
        made.append(dreamt)
        return dreamt

    nights = Nights(house(config(enabled=True), clock), make)
    assert made == []
    async with Tasks() as spawn:
        spawn(nights.run(), "nights")
        await asyncio.sleep(0)
        await clock.advance(FIRST_S)
        for _ in range(3):
            await clock.advance(EVERY_S)
        assert dreamt.agents == ["main"]
        assert [now - looked for looked, now in dreamt.at] == [60_000] * 3
        dreamt.broken = True
        await clock.advance(EVERY_S)
        assert dreamt.agents == ["main"]
    assert len(made) == 1


def test_it_is_off_unless_it_is_switched_on() -> None:
    clock = ManualClock()
    assert not Nights(house(Config.model_validate({}), clock)).enabled
    assert not Nights(house(config(), clock)).enabled
    assert Nights(house(config(enabled=True), clock)).enabled
    assert not Nights(house(config(enabled=True), clock, on=False)).enabled
    with pytest.raises(Unavailable):
        Nights(house(config(enabled=True), clock, on=False)).dreams()


def test_what_is_set_wrong_is_said_with_its_key() -> None:
    assert read({}).frequency == "0 3 * * *"
    assert read({"dreaming": {"phases": {"deep": {"minScore": 0.5}}}}).phases.deep.min_score == 0.5
    with pytest.raises(UserError, match=r"plugins.entries.memory-core.config.dreaming.phases.deep.minScore"):
        read({"dreaming": {"phases": {"deep": {"minScore": 7}}}})


def test_its_state_in_words() -> None:
    told = {"enabled": False, "frequency": "0 3 * * *", "apply": "ask", "model": None, "nextRunAtMs": None,
            "zone": "UTC", "waiting": ["a"]}  # fmt: skip
    assert shown(told) == (
        "Dreaming: off. 1 proposal waits for you (garra memory dreams). /dreaming on switches it on."
    )
    on = shown({**told, "enabled": True, "apply": "auto", "model": "p/m", "nextRunAtMs": 0, "waiting": []})
    assert on == "Dreaming: on, 0 3 * * * UTC; clean lines come in at once; p/m."
