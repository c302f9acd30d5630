"""A short run against bash; the long one is `make fuzz`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from garra.core.execjudge import Step
from tests.fuzz.against_bash import Recorders, lines, tried
from tests.fuzz.grammar import SEEDS, Grammar


class Drawn:
    """Chooses as hypothesis says, which makes a line that fails as short as it can."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def pick(self, among: Sequence[str]) -> str:
        return self.draw(st.sampled_from(among))

    def count(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))


@st.composite
def shell_lines(draw: st.DrawFn) -> str:
    return Grammar(Drawn(draw)).line()


@pytest.fixture(scope="module")
def recorders() -> Iterator[Recorders]:
    with Recorders() as made:
        yield made


@pytest.mark.needs("bwrap", "dash")
@pytest.mark.timeout(120)
def test_what_is_let_through_is_what_bash_would_run(recorders: Recorders) -> None:
    passed = 0
    for text in (*SEEDS, *lines(1_001, 600)):
        allowed, wrong = tried(text, recorders)
        assert not wrong, text
        passed += allowed
    assert passed > 100


@pytest.mark.needs("bwrap", "dash")
@pytest.mark.timeout(120)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(shell_lines())
def test_no_drawn_line_is_read_as_another(recorders: Recorders, text: str) -> None:
    assert not tried(text, recorders)[1]


@pytest.mark.needs("bwrap", "dash")
def test_two_thousand_lines_break_nothing(recorders: Recorders) -> None:
    judged = [recorders.judged(text) for seed in (2_001, 2_002) for text in lines(seed)]
    assert len(judged) >= 2_000
    assert any(judged)


@pytest.mark.needs("bwrap", "dash")
def test_the_reference_tells_what_is_read_differently(recorders: Recorders) -> None:
    (echo,) = cast("tuple[Step, ...]", recorders.judged("echo a"))
    assert recorders.differs("echo a", (echo,)) == ""
    assert "judged" in recorders.differs("echo b", (echo,))
    assert "not listed" in recorders.differs("echo a; touch z", (echo,))
    assert "not listed" in recorders.differs("echo $(touch z)", (echo,))
    assert "files" in recorders.differs("echo a >z", (echo,))
