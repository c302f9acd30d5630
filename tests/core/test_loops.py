"""Two bots stop answering each other."""

from __future__ import annotations

import pytest

from garra.core.loops import Heard, Hush, Pass, Settings, State, step


@pytest.mark.req("CH-23")
def test_a_pair_is_heard_twenty_times_a_minute_then_left_alone_for_one() -> None:
    state, heard = State(), []
    for second in range(25):
        state, effect = step(state, Heard(second * 1000))
        heard.append(effect)
    assert heard == [Pass()] * 20 + [Hush(first=True)] + [Hush(first=False)] * 4
    state, effect = step(state, Heard(20_000 + 59_999))
    assert effect == Hush(first=False)
    state, effect = step(state, Heard(20_000 + 60_000))
    assert effect == Pass()


def test_a_slow_talk_goes_on_for_ever() -> None:
    state = State()
    for turn in range(100):
        state, effect = step(state, Heard(turn * 4_000))
        assert effect == Pass()
    assert len(state.times) <= 20


def test_the_guard_can_be_off() -> None:
    state = State(Settings(on=False, most=1))
    for _ in range(5):
        state, effect = step(state, Heard(0))
        assert effect == Pass()
    assert state.times == ()
