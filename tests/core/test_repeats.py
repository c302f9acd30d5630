"""A run that goes round in circles is told, then ended; one that gets on is left alone."""

from __future__ import annotations

import pytest

from garra.core.messages import Text, ToolCall, ToolResult
from garra.core.repeats import ALIKE, CIRCLE, DIFFERING, FAILING, LIMIT, State, may, note, step


def play(*calls: tuple[str, str, bool]) -> tuple[State, list[int]]:
    """Runs (arguments, answer, failed) one after another; the numbers of those that were noted."""
    state, noted = State(), []
    for number, (argument, answer, failed) in enumerate(calls, start=1):
        state, tell = step(state, call(argument), ToolResult("1", "exec", (Text(answer),), 0, is_error=failed))
        if tell:
            noted.append(number)
    return state, noted


def call(argument: str) -> ToolCall:
    return ToolCall("1", "exec", {"command": argument})


@pytest.mark.parametrize(
    ("calls", "noted", "over"),
    [
        ([("a", "same", False)] * ALIKE, [5], True),
        ([("a", "no", True)] * FAILING, [3], True),
        ([("a", "same", False)] * (ALIKE - 1), [], False),
        ([("a", str(n), False) for n in range(DIFFERING - 1)], [], False),
        ([("a", str(n), False) for n in range(DIFFERING)], [DIFFERING], True),
        ([("a", "no", True), ("edit", "ok", False)] * 4, [], False),
        ([("a", "x", False), ("b", "y", False)] * CIRCLE, [19, 20], False),
        ([("a", "x", False), ("b", "y", False)] * LIMIT, [19, 20, 39, 40], True),
        ([("a", "no", False), ("a", "no", True), ("a", "no", False)], [], False),
    ],
)
def test_limits(calls: list[tuple[str, str, bool]], noted: list[int], over: bool) -> None:
    state, told = play(*calls)
    assert told == noted
    assert may(state, call("a")) is not over
    assert may(state, call("something else"))


def test_the_order_of_arguments_is_nothing() -> None:
    state, _ = step(State(), ToolCall("1", "x", {"a": 1, "b": [2]}), ToolResult("1", "x", (), 0))
    state, _ = step(state, ToolCall("2", "x", {"b": [2], "a": 1}), ToolResult("2", "x", (), 0))
    assert state.streak == 2


def test_the_note_says_how_often() -> None:
    state, _ = play(*[("a", "no", True)] * 3)
    assert "failed the same way 3 times" in note(state, call("a"))
    state, _ = play(*[("a", "ok", False)] * 5)
    assert "been made 5 times" in note(state, call("a"))
