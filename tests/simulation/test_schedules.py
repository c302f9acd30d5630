"""Messages through faults, slow and full disks, kills and power cuts: each answered once, in order, or explained.

A few hundred seeds here; `python -m tests.simulation 0 20000` runs as many as wanted. A failure names its seed.
"""

from __future__ import annotations

import logging

import pytest
from blockbuster import BlockBuster

from garra.sdk.channel import Outbound
from tests.simulation.schedule import Broken, run
from tests.simulation.world import Platform


@pytest.mark.req("MSG-02", "CH-20", "ONE-03")
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_every_message_is_answered_once_or_explained(
    first: int, no_blocking: BlockBuster, caplog: pytest.LogCaptureFixture
) -> None:
    no_blocking.deactivate()
    caplog.set_level(logging.CRITICAL)
    ended = [run(seed) for seed in range(first, first + 20)]  # a broken promise raises, with its seed
    assert sum(each.answers for each in ended) > 0


def test_a_schedule_is_the_same_each_time(no_blocking: BlockBuster) -> None:
    """Down to the moment at which the last message was shown."""
    no_blocking.deactivate()
    seeds = range(7, 17)
    assert [run(seed) for seed in seeds] == [run(seed) for seed in seeds]


def test_a_broken_promise_names_its_seed(no_blocking: BlockBuster, caplog: pytest.LogCaptureFixture) -> None:
    """A platform that shows everything twice breaks a promise; the simulation has to see it."""
    no_blocking.deactivate()
    caplog.set_level(logging.CRITICAL)

    class Twice(Platform):
        def show(self, message: Outbound) -> str:
            super().show(message)
            return super().show(message)

    with pytest.raises(Broken, match=r"seed 2: .* was shown 2 times"):
        run(2, Twice)
