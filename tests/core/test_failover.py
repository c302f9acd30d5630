"""What comes after a call that failed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core import failover
from garra.core.errors import Failure, FailureKind
from garra.core.failover import Again, Failed, Go, Moved, NextModel, NextProfile, State, Stop, Suspend

K = FailureKind


def failed(kind: FailureKind, wait: int | None = None, free: int | None = None, *, creates: bool = False) -> Failed:
    return Failed(Failure(kind, "x", retry_after_ms=wait), creates, free)


def effects(state: State, *events: Failed) -> list[failover.Effect]:
    found = []
    for event in events:
        state, effect = failover.step(state, event)
        found.append(effect)
    return found


@pytest.mark.parametrize("kind", [K.CUT, K.NETWORK, K.SERVER, K.OVERLOADED, K.EMPTY])
@pytest.mark.req("MODEL-12")
def test_a_fault_that_passes_gets_two_more_tries_each_later(kind: FailureKind) -> None:
    level: failover.Level = "transport" if kind is K.NETWORK else "operation"
    assert effects(State(), *[failed(kind)] * 3) == [Again(250, level), Again(500, level), Stop()]


def test_what_makes_something_is_not_made_twice() -> None:
    assert effects(State(), failed(K.CUT, creates=True)) == [Stop()]


@pytest.mark.parametrize("kind", [K.AUTH, K.BILLING, K.NOT_FOUND, K.REFUSED, K.RATE_LIMIT, K.TIMEOUT, K.UNKNOWN])
def test_a_lasting_fault_is_not_tried_again(kind: FailureKind) -> None:
    assert effects(State(), failed(kind)) == [Stop()]


def test_a_short_wait_of_the_server_is_kept() -> None:
    assert effects(State(), failed(K.RATE_LIMIT, 1_000), failed(K.RATE_LIMIT, 1_000)) == [
        Again(1_000, "transport"), Stop(),
    ]  # fmt: skip
    assert effects(State(), failed(K.OVERLOADED, 1_000)) == [Again(1_000, "transport")]
    assert effects(State(), failed(K.OVERLOADED, 60_000)) == [Stop()]


@pytest.mark.parametrize("kind", [K.CANCELLED, K.OVERFLOW, K.FILTERED, K.TOOL_LOOP, K.BUDGET])
@pytest.mark.req("MODEL-14")
def test_what_ends_at_once(kind: FailureKind) -> None:
    assert effects(State(profiles=3, models=3), failed(kind)) == [Stop()]


@pytest.mark.parametrize("kind", [K.AUTH, K.BILLING, K.NO_KEY])
def test_a_fault_of_the_login_goes_to_the_next(kind: FailureKind) -> None:
    state = State(profiles=2, models=1)
    assert effects(state, *[failed(kind)] * 3) == [NextProfile(), NextProfile(), NextModel()]


@pytest.mark.req("MODEL-15")
def test_limits_rotate_once_where_another_model_could_answer() -> None:
    limit = failed(K.RATE_LIMIT)
    assert effects(State(profiles=9, models=1), limit, limit) == [NextProfile(), NextModel()]
    assert effects(State(profiles=9, models=1, cap=0), limit) == [NextModel()]
    assert effects(State(profiles=2), *[limit] * 3) == [NextProfile(), NextProfile(), Stop()]


def test_overload_rotates_after_its_tries() -> None:
    over = failed(K.OVERLOADED)
    assert effects(State(profiles=1, models=1, most=1), *[over] * 4) == [
        Again(250, "operation"), NextProfile(), Again(250, "operation"), NextModel(),
    ]  # fmt: skip


def test_a_silent_model_is_left_at_once() -> None:
    assert effects(State(profiles=2, models=1), failed(K.TIMEOUT)) == [NextModel()]
    assert effects(State(profiles=2), failed(K.TIMEOUT)) == [NextProfile()]


def test_the_next_model_begins_anew() -> None:
    state, effect = failover.step(State(models=1, tries=2, rotations=1), failed(K.SERVER))
    assert effect == NextModel()
    state, effect = failover.step(state, Moved(profiles=2))
    assert (state, effect) == (State(profiles=2), Go())


def test_where_all_rest_the_session_does() -> None:
    assert effects(State(), failed(K.RATE_LIMIT, free=30_000)) == [Suspend(30_000)]


_FAILED = st.builds(
    failed, st.sampled_from(sorted(K)), st.none() | st.integers(0, 90_000), st.none() | st.integers(1, 90_000)
)


@given(st.integers(0, 5), st.integers(0, 5), st.lists(_FAILED, min_size=60, max_size=60))
def test_it_always_ends(profiles: int, models: int, events: list[Failed]) -> None:
    state, calls = State(profiles=profiles, models=models), 0
    for event in events:
        calls += 1
        state, effect = failover.step(state, event)
        if isinstance(effect, NextModel):
            state, _ = failover.step(state, Moved(profiles))
        elif isinstance(effect, Stop | Suspend):
            break
    assert calls <= (models + 1) * (profiles + 1) * (failover.TRIES + 1)
