"""What a model is sent of a history costs what is new in it."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime, timedelta, tzinfo

from garra.core.messages import Assistant, Message, Text, User
from garra.runs.history import SLICE, History
from garra.sdk.model import Model

MODEL = Model("p", "m", "fake", "http://x")


class Zone(tzinfo):
    """Counts how often it is asked the time."""

    asked = 0

    def fromutc(self, dt: datetime) -> datetime:
        self.asked += 1
        return dt

    def utcoffset(self, dt: datetime | None) -> timedelta:
        return UTC.utcoffset(dt)

    def tzname(self, dt: datetime | None) -> str:
        return UTC.tzname(dt)

    def dst(self, dt: datetime | None) -> None:
        return None


def talk(turns: int) -> tuple[Message, ...]:
    both = ((User((Text(f"question {n}"),), n), Assistant((Text("so"),), n)) for n in range(turns))
    return tuple(itertools.chain.from_iterable(both))


async def test_a_turn_stamps_and_checks_only_what_is_new() -> None:
    for turns in (10, 2_000):
        zone, history = Zone(), talk(turns)
        seen = History(zone)
        first = seen.request(history, MODEL)
        assert zone.asked == turns
        asked = (*history, User((Text("and?"),), 1))
        second = seen.request(asked, MODEL)
        assert zone.asked == turns + 1
        assert all(one is other for one, other in zip(first, second, strict=False))
        # a word that is taken back costs nothing again of what stood before it
        third = seen.request((*asked[:-1], User((Text("or?"),), 1)), MODEL)
        assert zone.asked == turns + 2
        assert third[:-1] == first


async def test_a_long_history_is_prepared_in_slices_and_reads_the_same() -> None:
    history, seen, turns = talk(1_000), History(UTC), 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await seen.prepare(history, MODEL)
    beside.cancel()
    assert turns >= 2_000 // SLICE - 1
    assert seen.request(history, MODEL) == History(UTC).request(history, MODEL)
    before = turns
    await seen.prepare((*history, *talk(1)), MODEL)
    assert turns == before


async def test_the_caller_says_how_others_have_their_turn() -> None:
    history, seen, rests = talk(1_000), History(UTC), 0

    async def rest() -> None:
        nonlocal rests
        rests += 1

    await seen.prepare(history, MODEL, rest)
    assert rests == -(-2_000 // SLICE) - 1
    assert seen.request(history, MODEL) == History(UTC).request(history, MODEL)
