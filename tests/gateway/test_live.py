"""Live words: every word is sent once as new, repeats are whole, and a flood is bounded."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from garra.gateway.live import BUDGET, INTERVAL_S, LiveText


def words(raw: msgspec.Raw) -> str:
    return msgspec.json.decode(raw, type=str)


@given(st.lists(st.lists(st.text(), max_size=6), max_size=5))
def test_new_words_put_together_are_all_words(messages: list[list[str]]) -> None:
    live, fresh, own = LiveText(), "", ""
    for deltas in messages:
        live.begin()
        own = ""
        for delta in deltas:
            live.add(delta)
            if live:
                new, whole, item_new, item = live.take(0.0)
                fresh, own = fresh + words(new), own + words(item_new)
                assert fresh == words(whole) == live.text
                assert words(item) == own
    spoken = ["".join(deltas) for deltas in messages]
    assert live.text.replace("\n\n", "") == "".join(spoken).replace("\n\n", "")


def test_messages_are_paragraphs() -> None:
    live = LiveText()
    for message in ("Let me look.", "Found it."):
        live.begin()
        live.add(message)
    assert live.text == "Let me look.\n\nFound it."


def test_half_a_character_does_not_stop_the_stream() -> None:
    live = LiveText()
    live.add("a\ud83d")
    assert live.text == "a?"


def test_the_first_words_go_out_at_once_then_paced() -> None:
    live = LiveText()
    live.add("a")
    assert live.due(5.0) <= 0
    live.take(5.0)
    live.add("b")
    assert abs(live.due(5.0) - INTERVAL_S) < 1e-9
    assert live.due(5.0 + INTERVAL_S) <= 0


def test_a_flood_is_slowed_down_once_its_budget_is_spent() -> None:
    live, now, sent = LiveText(), 0.0, 0
    piece = "x" * (64 << 10)
    while now < 120.0:
        live.add(piece if len(live.text) < 4 << 20 else "y")
        now += max(0.0, live.due(now))
        sent += 2 * len(live.take(now)[1])
    assert sent < 2 * BUDGET + 120 * (4 << 20)
