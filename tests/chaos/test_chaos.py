"""A short storm; the whole one is `python -m tests.chaos`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.storm import storm

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.mark.needs("bwrap")
async def test_a_hundred_turns_over_models_that_fail(tmp_path: Path) -> None:
    outcome = await storm(tmp_path, 100, seed=7)
    assert not outcome.broken
    assert outcome.answered + sum(outcome.explained.values()) == 100
    assert outcome.answered >= 60, outcome
    assert outcome.effects >= 10, outcome
