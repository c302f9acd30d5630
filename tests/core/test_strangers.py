"""How much of what strangers say is kept."""

from __future__ import annotations

from garra.core.strangers import MINUTE_MS, OF_ALL, OF_ONE, State, came, told


def flood(state: State, senders: list[str], now_ms: int) -> tuple[State, int]:
    kept = 0
    for sender in senders:
        state, keep = came(state, sender, now_ms)
        kept += keep
    return state, kept


def test_of_one_stranger_twenty_messages_a_minute_are_kept() -> None:
    state, kept = flood(State(), ["666"] * 1_000, 5)
    assert (kept, state.left_out) == (OF_ONE, 1_000 - OF_ONE)
    state, kept = flood(state, ["666"] * 30, 5 + MINUTE_MS)
    assert (kept, state.left_out) == (OF_ONE, 1_000 - OF_ONE + 10)


def test_of_all_strangers_of_an_account_two_hundred_are() -> None:
    state, kept = flood(State(), [str(number) for number in range(1_000)], 5)
    assert (kept, len(state.kept), state.left_out) == (OF_ALL, OF_ALL, 800)


def test_one_loud_stranger_leaves_room_for_the_next() -> None:
    state, _ = flood(State(), ["666"] * 1_000, 5)
    assert came(state, "7", 6)[1]


def test_nobody_in_particular_is_held_by_the_limit_of_all_alone() -> None:
    assert flood(State(), [""] * 1_000, 5)[1] == OF_ALL


def test_a_clock_that_was_set_back_begins_anew() -> None:
    state, _ = flood(State(), ["666"] * 30, MINUTE_MS * 10)
    assert came(state, "666", MINUTE_MS)[1]


def test_what_was_left_out_is_told_once() -> None:
    state, _ = flood(State(), ["666"] * 25, 5)
    state, count = told(state)
    assert (count, told(state)[1]) == (5, 0)
