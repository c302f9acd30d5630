"""An answer in blocks: in order, and nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.blocks import Arrived, Began, Event, Grew, Late, Send, State, Unwritten, rest, step
from garra.core.chunking import Blocks

SMALL = Blocks(10, 40)
ONE, TWO, THREE = "first block here\n\n", "second block here\n\n", "third block here\n\n"


def play(*events: Event) -> tuple[State, list[Send]]:
    state = State(SMALL)
    out: list[Send] = []
    for event in events:
        state, sends = step(state, event)
        out += sends
    return state, out


def test_a_block_waits_for_the_one_before_it() -> None:
    state, out = play(Began(), Grew(ONE + TWO))
    assert out == [Send(0, "first block here")]
    state, sends = step(state, Arrived())
    assert sends == (Send(1, "second block here"),)
    state, sends = step(state, Arrived())
    assert sends == ()
    assert rest(state, ONE + TWO + "end") == "end"


@pytest.mark.req("CH-13")
def test_a_late_block_breaks_the_line_and_the_end_brings_what_is_missing() -> None:
    state, out = play(Began(), Grew(ONE), Arrived(), Grew(TWO), Grew(THREE), Late(), Grew("fourth block here\n\n"))
    assert [send.text for send in out] == ["first block here", "second block here"]
    assert rest(state, f"{ONE}{TWO}{THREE}fourth block here") == "third block here\n\nfourth block here"


@pytest.mark.req("CH-13")
def test_what_went_out_is_not_said_again() -> None:
    state, _ = play(Began(), Grew(ONE), Arrived())
    assert rest(state, "first block here") == ""
    assert rest(state, "Something else") == "Something else"
    assert rest(State(SMALL), "All of it") == "All of it"


def test_what_was_never_written_is_said_in_the_end() -> None:
    state, _ = play(Began(), Grew(ONE), Unwritten("first block here"), Grew("end"))
    assert rest(state, ONE + "end") == ONE + "end"
    assert (state.sent, state.said, state.broken) == (0, 0, True)


def test_a_new_message_lets_the_one_before_go_first() -> None:
    state, out = play(Began(), Grew("let me see"), Began(), Grew(ONE))
    assert out == [Send(0, "let me see")]
    state, sends = step(state, Arrived())
    assert sends == (Send(1, "first block here"),)
    broken, out = play(Began(), Grew(ONE), Late(), Grew("more"), Began(), Grew(TWO))
    assert [send.text for send in out] == ["first block here"]
    assert rest(broken, TWO) == TWO


@given(st.lists(st.sampled_from(["word ", "a.\n\n", "longer words here\n\n", "x" * 30])), st.integers(0, 30))
def test_all_words_come_once_and_in_order(deltas: list[str], late: int) -> None:
    state, said = State(SMALL), []
    for number, delta in enumerate(deltas):
        for event in (Grew(delta), Late() if number == late and state.away else Arrived()):
            state, sends = step(state, event)
            said += [send.text for send in sends]
    text = "".join(deltas)
    assert "".join(" ".join([*said, rest(state, text)]).split()) == "".join(text.split())
