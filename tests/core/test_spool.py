"""The table of moves, and what a failed send means."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core import spool
from garra.core.spool import (
    INBOX_MOVES,
    OUTBOX_MOVES,
    TRIES,
    Again,
    Dead,
    Degrade,
    Doubt,
    Fault,
    Hold,
    InboxMove,
    InboxState,
    OutboxMove,
    OutboxState,
    Sending,
    Split,
    Unload,
    Waiting,
    evicted,
    fail,
)

NOW = 1_760_000_000_000


def test_every_move_is_told_for_known_states_only() -> None:
    assert set(INBOX_MOVES) == set(get_args(InboxMove))
    assert set(OUTBOX_MOVES) == set(get_args(OutboxMove))
    for table, states in ((INBOX_MOVES, get_args(InboxState)), (OUTBOX_MOVES, get_args(OutboxState))):
        for moves in table.values():
            assert {*moves, *moves.values()} <= set(states)


def test_what_ended_well_stays() -> None:
    assert not any("done" in moves for moves in INBOX_MOVES.values())
    assert not any("sent" in moves for moves in OUTBOX_MOVES.values())


@given(st.lists(st.sampled_from(sorted(OUTBOX_MOVES)), max_size=20))
def test_a_message_is_sent_again_by_itself_only_when_it_surely_did_not_arrive(moves: list[OutboxMove]) -> None:
    """Whatever happens, only `release` and the owner's `retry` lead back to pending; doubt never does by itself."""
    state: OutboxState = "pending"
    for move in moves:
        to = OUTBOX_MOVES[move].get(state)
        if to is None:
            continue
        if to == "pending":
            assert (state, move) in {("sending", "release"), ("unsure", "retry"), ("dead", "retry")}
        state = to


def test_a_passing_fault_waits_longer_each_time_and_ends() -> None:
    waits = []
    row = Sending()
    while isinstance(effect := fail(row, "passing", NOW), Again):
        waits.append(effect.at_ms - NOW)
        row = Sending(tries=effect.tries)
    assert waits[:4] == [1_000, 2_000, 4_000, 8_000]
    assert max(waits) == 600_000
    assert len(waits) == TRIES - 1
    assert isinstance(effect, Dead)


@pytest.mark.req("CH-17")
def test_the_platforms_own_later_burns_no_try() -> None:
    assert fail(Sending(tries=TRIES), "passing", NOW, 2.0) == Again(NOW + 2000, TRIES)
    assert fail(Sending(), "passing", NOW, -1.0) == Again(NOW, 0)


def test_an_unknown_end_is_repeated_only_where_the_platform_knows_the_key() -> None:
    assert fail(Sending(), "unsure", NOW) == Doubt()
    assert fail(Sending(idempotent=True), "unsure", NOW) == Again(NOW + 1000, 1)


def test_markup_length_and_files_are_mended() -> None:
    assert fail(Sending(forms=3), "format", NOW) == Degrade(1)
    assert fail(Sending(forms=3, stage=1), "format", NOW) == Degrade(2)
    assert fail(Sending(forms=3), "too_long", NOW) == Degrade(2)
    assert fail(Sending(forms=3, stage=2), "too_long", NOW) == Split()
    assert fail(Sending(files=1), "too_large", NOW) == Unload()
    assert fail(Sending(), "auth", NOW) == Hold()


@pytest.mark.parametrize("fault", ["refused", "gone", "format", "too_long", "too_large"])
def test_permanent_faults_are_reported_and_not_tried_again(fault: Fault) -> None:
    assert isinstance(fail(Sending(pieces=False), fault, NOW), Dead)


def test_a_restart_takes_back_what_was_claimed_and_doubts_what_was_being_sent() -> None:
    assert [spool.waking(state) for state in get_args(InboxState)] == ["pending", "pending", "adopted", "done", "dead"]
    known = [spool.resumed(state, idempotent=True) for state in get_args(OutboxState)]
    assert known == ["pending", "pending", "sent", "pending", "dead"]
    plain = [spool.resumed(state, idempotent=False) for state in get_args(OutboxState)]
    assert plain == ["pending", "unsure", "sent", "unsure", "dead"]


queues = st.lists(st.booleans(), max_size=30).map(
    lambda own: [Waiting(str(number), mine) for number, mine in enumerate(own)]
)


@pytest.mark.req("CH-21")
@given(queues, st.integers(0, 30))
def test_a_full_queue_loses_the_bots_own_first_oldest_first(queue: list[Waiting], cap: int) -> None:
    gone = evicted(queue, cap)
    assert len(queue) - len(gone) == min(cap, len(queue))
    own = [waiting.id for waiting in queue if waiting.own]
    people = [waiting.id for waiting in queue if not waiting.own]
    assert list(gone) == (own + people)[: len(gone)]


def test_who_floods_a_full_queue_pushes_out_nobody_else() -> None:
    queue = [Waiting("ann", own=False, sender="1"), *(Waiting(f"m{n}", own=False, sender="2") for n in range(5))]
    assert evicted(queue, 3) == ("m0", "m1", "m2")
    assert evicted(queue, 1) == ("m0", "m1", "m2", "m3", "ann")


def test_a_name_tells_when_and_is_the_only_one() -> None:
    one = spool.name(NOW, "telegram", "main", "7", "message", "1")
    assert one == spool.name(NOW, "telegram", "main", "7", "message", "1")
    assert one != spool.name(NOW, "telegram", "main", "71", "message", "")
    assert one < spool.name(NOW + 1, "a")
    assert spool.name(0, "a").startswith("m0-")
