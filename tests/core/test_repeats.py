"""A run that goes round in circles is told, then ended; one that gets on is left alone."""

from __future__ import annotations

import pytest

from garra.core.messages import Text, ToolCall, ToolResult
from garra.core.repeats import ALIKE, CIRCLE, DIFFERING, FAILING, LIMIT, UNKNOWN, Settings, State, may, note, step


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
        ([("a", "x", False), ("b", "y", False), ("c", "z", False)] * CIRCLE, [28, 29, 30], False),
        ([("a", "x", False), ("b", "y", False), ("c", "z", False)] * LIMIT, [28, 29, 30, 58, 59, 60], True),
        ([("a", "x", False), ("b", "y", False)] * 9, [10], False),
        ([("a", "x", False), ("b", "y", False)] * 10, [10, 19, 20], True),
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


def poll(action: str = "poll") -> ToolCall:
    return ToolCall("1", "process", {"action": action})


def test_who_waits_for_a_job_may_look_longer() -> None:
    state, noted = State(), []
    for number in range(1, LIMIT + 1):
        assert may(state, poll())
        state, tell = step(state, poll(), ToolResult("1", "process", (Text("running"),), 0))
        noted += [number] if tell else []
    assert noted == [CIRCLE, LIMIT]
    assert not may(state, poll())


def test_what_goes_on_while_it_is_looked_at_is_no_circle() -> None:
    state = State()
    for number in range(3 * DIFFERING):
        state, tell = step(state, poll(), ToolResult("1", "process", (Text(f"{number} %"),), 0))
        assert not tell
    assert may(state, poll())


def test_to_send_keys_is_not_to_look_and_failing_looks_are_a_circle() -> None:
    state = State()
    for _ in range(ALIKE):
        state, _ = step(state, poll("submit"), ToolResult("1", "process", (Text("ok"),), 0))
    assert not may(state, poll("submit"))
    state = State()
    for _ in range(FAILING):
        state, _ = step(state, poll(), ToolResult("1", "process", (Text("no such"),), 0, is_error=True))
    assert not may(state, poll())
    plain = Settings(polls=False)
    state = State()
    for _ in range(ALIKE):
        state, _ = step(state, poll(), ToolResult("1", "process", (Text("running"),), 0), plain)
    assert not may(state, poll(), plain)
    any_action = ToolCall("1", "session_status", {})
    state = State()
    for _ in range(ALIKE):
        state, _ = step(state, any_action, ToolResult("1", "session_status", (Text("idle"),), 0))
    assert may(state, any_action)


def test_tools_that_do_not_exist_are_told_and_then_end_it() -> None:
    state, noted = State(), []
    for number in range(1, UNKNOWN + 1):
        made_up = ToolCall("1", f"tool{number}", {})
        assert may(state, made_up, known=False)
        state, tell = step(state, made_up, ToolResult("1", "x", (Text("none"),), 0, is_error=True), known=False)
        if tell:
            noted.append(number)
            assert f"[{number} calls were of tools that do not exist" in note(state, made_up)
    assert noted == [5, 10]
    assert not may(state, ToolCall("1", "tool11", {}), known=False)
    assert may(state, call("real"))
    assert may(state, ToolCall("1", "tool11", {}), Settings(unknown=0), known=False)


def test_each_detector_can_be_off() -> None:
    state = State()
    for _ in range(60):
        state, tell = step(state, call("a"), ToolResult("1", "exec", (Text("x"),), 0), Settings(on=False))
        assert not tell
    assert state == State()
    quiet = Settings(generic=False, ping_pong=False)
    for number in range(LIMIT - 1):
        state, tell = step(state, call("a"), ToolResult("1", "exec", (Text("x"),), 0), quiet)
        assert tell is (number == CIRCLE - 1)
    assert may(state, call("a"), quiet)
