"""What was said in a group reaches the next turn once, and a store that refuses stops no turn."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from garra.core.errors import Unavailable
from garra.core.groups import Line
from garra.turns.histories import Histories


@dataclass
class Paper:
    """A shelf in memory that refuses to write so many times."""

    refusals: int = 0
    values: dict[str, object] = field(default_factory=dict)

    async def get(self, key: str) -> object:
        return self.values.get(key)

    async def set(self, key: str, value: object, *, durable: bool = False) -> None:
        self._refuse()
        self.values[key] = value

    async def remove(self, key: str, *, durable: bool = False) -> bool:
        self._refuse()
        return self.values.pop(key, None) is not None

    def _refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("the disk is full", retryable=True)


async def test_what_was_noted_again_is_there_once() -> None:
    paper = Paper(refusals=1)
    histories = Histories(paper)
    line = Line("Bob (2)", "2", "aside", "m1")
    with pytest.raises(Unavailable):
        await histories.note("place", line, 50)
    await histories.note("place", line, 50)
    assert await histories.peek("place") == (line,)
    assert await Histories(paper).peek("place") == (line,)


async def test_a_turn_that_has_begun_is_not_stopped_by_what_cannot_be_cleared() -> None:
    paper = Paper()
    histories = Histories(paper)
    await histories.note("place", Line("Bob (2)", "2", "aside", "m1"), 50)
    paper.refusals = 1
    await histories.clear("place")
    assert await histories.peek("place") == ()
