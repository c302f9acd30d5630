"""Between two slices of long work those who wait are let through: by a round of the loop, or until they are done."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC

import pytest

from garra.core.compaction import Measure
from garra.core.messages import Message, Text, User
from garra.runs import fitting
from garra.runs.breathing import breathing
from garra.runs.history import SLICE, History
from garra.sdk.model import Model
from garra.sdk.written import Messages, Written

MODEL = Model("p", "m", "fake", "http://x")
ROUNDS = 12
"""So often a turn of another session comes back to the loop."""


def talk(count: int) -> tuple[Message, ...]:
    return tuple(User((Text(f"word {n}"),), n) for n in range(count))


class Slices:
    """Counts the slices of some work, and knows how many there were when a turn beside it was over."""

    def __init__(self, *, crowded: bool) -> None:
        self.count = 0
        self.met: int | None = None
        self._rest = breathing(lambda: crowded and self.met is None)

    async def rest(self) -> None:
        self.count += 1
        await self._rest()

    async def other(self) -> None:
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        self.met = self.count


async def encoded(slices: Slices) -> bytes:
    """A long history, made valid and written, with a turn of another session beside it."""
    history, seen = talk(SLICE * 4 * ROUNDS), History(UTC)
    other = asyncio.create_task(slices.other())
    await seen.prepare(history, MODEL, slices.rest)
    await other

    def write(messages: Messages, _: int) -> bytes:
        return b"".join(each.text.encode() for each in messages)

    written: Written[str] = Written(lambda _messages, _at: True)
    return b"".join(await written.pieces("s", seen.request(history, MODEL), write, slices.rest))


async def test_a_turn_beside_a_long_one_waits_for_a_slice_and_not_for_each() -> None:
    slices = Slices(crowded=True)
    await encoded(slices)
    assert slices.met is not None
    assert slices.met < ROUNDS // 2  # it may be that the machine is busy elsewhere


async def test_a_long_turn_comes_to_its_end_however_many_begin() -> None:
    asked = 0

    def crowded() -> bool:
        nonlocal asked
        asked += 1
        return True

    rest = breathing(crowded)
    await rest()
    first = asked
    await rest()
    assert first > 50  # it let others go first
    assert asked - first < 5  # and takes its share from then on


async def test_alone_nothing_is_waited_for_and_the_bytes_are_the_same() -> None:
    slices = Slices(crowded=False)
    alone = await encoded(slices)
    assert slices.met is not None
    assert slices.met >= ROUNDS - 1  # one round a slice, no more
    assert alone == await encoded(Slices(crowded=True))


@pytest.mark.parametrize("known", [0, 3_000])
async def test_a_history_is_measured_in_slices(known: int) -> None:
    messages, measure, whole, seen = talk(3_000), Measure(), Measure(), list[int]()
    measure.on(messages[:known])

    async def rest() -> None:
        seen.append(len(measure.sizes))

    await fitting.grown(measure, messages, rest)
    measure.on(messages)
    whole.on(messages)
    assert (measure.sizes, measure.sent) == (whole.sizes, whole.sent)
    steps = [known, *seen]
    assert all(b - a <= fitting.SLICE for a, b in itertools.pairwise(steps))
    assert seen  # what follows walks over it
