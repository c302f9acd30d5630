"""How fast one credential may send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.rates import Rate, State, delay, held, taken

TELEGRAM = Rate(per_second=30, per_chat_s=1.0, per_group_minute=20)


def send(state: State, rate: Rate, chat: str, now: float, *, group: bool = False) -> tuple[State, float]:
    """Wait as long as it takes, then send; when that was."""
    at = now + delay(state, rate, chat, now, group=group)
    assert delay(state, rate, chat, at, group=group) == pytest.approx(0, abs=1e-6)
    return taken(state, rate, chat, at, group=group), at


@pytest.mark.req("ONE-11")
def test_thirty_a_second_over_all_chats() -> None:
    state = State()
    times: list[float] = []
    for number in range(61):
        state, at = send(state, TELEGRAM, f"c{number}", times[-1] if times else 0.0)
        times.append(at)
    assert (times[29], times[30], times[59], times[60]) == (0.0, 1.0, 1.0, 2.0)


@pytest.mark.req("ONE-11")
def test_one_a_second_in_a_chat_and_twenty_a_minute_in_a_group() -> None:
    state = State()
    times: list[float] = []
    for _ in range(21):
        state, at = send(state, TELEGRAM, "g", times[-1] if times else 0.0, group=True)
        times.append(at)
    assert times[:3] == [0.0, 1.0, 2.0]
    assert times[20] == 60.0


@pytest.mark.req("CH-17")
def test_later_counts_for_every_chat() -> None:
    state = held(State(), 10.0, 2.0)
    assert delay(state, TELEGRAM, "a", 10.0) == 2.0
    assert delay(state, TELEGRAM, "b", 11.5) == 0.5
    assert delay(held(state, 10.0, 1.0), TELEGRAM, "b", 10.0) == 2.0
    assert delay(State(), TELEGRAM, "b", 10.0) == 0.0


def test_no_limits_keep_nothing() -> None:
    state, rate = State(), Rate()
    for number in range(100):
        state = taken(state, rate, str(number), 0.0, group=True)
    assert state == State()


def test_a_group_limit_alone_counts_groups_only() -> None:
    rate = Rate(per_group_minute=1)
    state = taken(State(), rate, "g", 0.0, group=True)
    assert delay(state, rate, "g", 1.0, group=True) == 59.0
    assert delay(state, rate, "g", 1.0) == 0.0
    assert taken(State(), rate, "g", 0.0) == State()


def test_less_than_one_a_second() -> None:
    rate = Rate(per_second=0.5)
    assert delay(taken(State(), rate, "a", 0.0), rate, "b", 0.5) == 1.5


def test_chats_that_fell_silent_are_forgotten() -> None:
    state = taken(State(), TELEGRAM, "a", 0.0)
    state = taken(state, TELEGRAM, "b", 100.0)
    assert list(state.chats) == ["b"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 3)), max_size=60),
    st.sampled_from([TELEGRAM, Rate(per_second=2), Rate(per_chat_s=0.7), Rate(1.5, 0.2, 3)]),
)
def test_no_limit_is_ever_passed(steps: list[tuple[str, float]], rate: Rate) -> None:
    state, now, sent = State(), 0.0, []
    for chat, pause in steps:
        now += pause
        state, now = send(state, rate, chat, now, group=chat == "a")
        sent.append((now, chat))
    slack = 1e-6
    for at, chat in sent:
        since = [(then, other) for then, other in sent if then <= at]
        if rate.per_second >= 1:
            span = int(rate.per_second) / rate.per_second
            assert sum(then > at - span + slack for then, _ in since) <= int(rate.per_second)
        if rate.per_chat_s:
            assert sum(then > at - rate.per_chat_s + slack for then, other in since if other == chat) <= 1
        if rate.per_group_minute and chat == "a":
            assert sum(then > at - 60 + slack for then, other in since if other == chat) <= rate.per_group_minute
