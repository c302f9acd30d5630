"""A connection's life, as a machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.connection import (
    HANDSHAKE_S,
    HELD,
    PING_S,
    Admitted,
    Answer,
    Arrived,
    Beat,
    Close,
    Cut,
    Dispatch,
    Effect,
    Ended,
    Event,
    Judge,
    Lost,
    Ping,
    Ponged,
    Refused,
    State,
    start,
    step,
)
from garra.core.errors import UserError
from garra.core.frames import Frame, Request, Stray

CONNECT = Request("req", "1", "connect")
CALL = Request("req", "2", "health")
STRAY = Stray("invalid", "must be object")


def after(*events: Event, state: State | None = None) -> tuple[State, list[Effect]]:
    now = state or start(0.0)
    every: list[Effect] = []
    for event in events:
        now, effects = step(now, event)
        every += effects
    return now, every


def opened() -> State:
    return after(Arrived(CONNECT), Admitted(0.0))[0]


@pytest.mark.req("GW-05")
def test_anything_but_connect_first_closes_and_runs_nothing() -> None:
    state, effects = after(Arrived(CALL))
    answer, close = effects
    assert isinstance(answer, Answer)
    assert answer.request_id == "2"
    assert close == Close(1008, "invalid handshake: first request must be connect")
    assert step(state, Arrived(CALL))[1] == ()


@pytest.mark.parametrize(("frame", "close"), [(None, Close(1000, "")), (STRAY, Close(1008, "invalid request frame"))])
def test_junk_first_closes_without_an_answer(frame: Frame, close: Close) -> None:
    assert after(Arrived(frame))[1] == [close]


def test_a_good_connect_opens_and_what_waited_is_done_in_order() -> None:
    _, effects = after(Arrived(CONNECT), Arrived(CALL), Arrived(None), Arrived(STRAY), Admitted(1.0))
    judge, dispatch, answer = effects
    assert judge == Judge(CONNECT)
    assert dispatch == Dispatch(CALL)
    assert isinstance(answer, Answer)
    assert answer.error.message == "invalid request frame: must be object"


@pytest.mark.req("GW-12")
def test_sixteen_frames_may_wait_and_the_seventeenth_closes() -> None:
    waiting, effects = after(Arrived(CONNECT), *[Arrived(CALL)] * HELD)
    assert effects == [Judge(CONNECT)]
    assert len(after(Admitted(0.0), state=waiting)[1]) == 16
    state, effects = after(Arrived(CALL), state=waiting)
    assert effects == [Close(1008, "too many pending handshake frames")]
    assert state.held == ()


def test_a_refused_connect_is_answered_and_closed() -> None:
    error = UserError("no")
    state, effects = after(Arrived(CONNECT), Refused("1", error, 1008, "no"))
    assert effects[1:] == [Answer("1", error), Close(1008, "no")]
    assert state.phase == "closed"


def test_an_open_connection_ignores_junk_and_answers_strays() -> None:
    state, effects = after(Arrived(None), Arrived(STRAY), Arrived(CALL), state=opened())
    assert [type(effect) for effect in effects] == [Answer, Dispatch]
    assert state.phase == "open"


@pytest.mark.req("GW-07")
@pytest.mark.parametrize("events", [(), (Arrived(CONNECT),)])
def test_a_handshake_takes_fifteen_seconds_at_most(events: tuple[Event, ...]) -> None:
    state, _ = after(*events)
    assert step(state, Beat(HANDSHAKE_S - 0.1))[1] == ()
    assert step(state, Beat(HANDSHAKE_S))[1] == (Close(1000, ""),)


@pytest.mark.req("GW-11")
def test_a_ping_each_25_seconds_and_25_more_for_the_pong() -> None:
    state, effects = after(Beat(PING_S - 0.1), state=opened())
    assert effects == []
    state, effects = after(Beat(PING_S), state=state)
    assert effects == [Ping()]
    alive, effects = after(Ponged(), Beat(2 * PING_S), state=state)
    assert effects == [Ping()]
    dead, effects = after(Beat(2 * PING_S), state=state)
    assert effects == [Cut()]
    assert (alive.phase, dead.phase) == ("open", "closed")


def test_the_gateway_ends_it_once() -> None:
    state, effects = after(Ended(1012, "service restart"), Ended(1008, "slow consumer"), state=opened())
    assert effects == [Close(1012, "service restart")]
    assert after(Lost(), state=opened())[0].phase == "closed"
    assert state.phase == "closed"


EVENTS = st.sampled_from(
    [
        Arrived(CONNECT),
        Arrived(CALL),
        Arrived(STRAY),
        Arrived(None),
        Admitted(5.0),
        Refused("1", UserError("no"), 1008, "no"),
        Beat(10.0),
        Beat(40.0),
        Beat(90.0),
        Ponged(),
        Ended(1012, "service restart"),
        Lost(),
    ]
)


@given(st.lists(EVENTS, max_size=40))
def test_nothing_runs_unless_admitted_and_nothing_follows_a_close(events: list[Event]) -> None:
    state, admitted = start(0.0), False
    for event in events:
        before = state
        admitted |= isinstance(event, Admitted) and before.phase != "closed"
        state, effects = step(state, event)
        assert len(state.held) <= HELD
        assert admitted or not any(isinstance(effect, Dispatch) for effect in effects)
        if before.phase == "closed":
            assert effects == ()
        if any(isinstance(effect, Close | Cut) for effect in effects):
            assert state.phase == "closed"
