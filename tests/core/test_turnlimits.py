"""How much one run may do, and the line of each end."""

from __future__ import annotations

from typing import Any

from garra.core import turnlimits
from garra.core.messages import Text, ToolResult
from garra.core.turnlimits import Limits, State


def result(kind: Any = None, *, is_error: bool = True) -> ToolResult:
    details = None if kind is None else {"kind": kind}
    return ToolResult("1", "exec", (Text("Not run:\nthe owner said no."),), 0, is_error, details)


def test_answers_are_counted() -> None:
    state, limits = State(), Limits(turns=2)
    for _ in range(2):
        state, line = turnlimits.ask(state, limits)
        assert not line
    state, line = turnlimits.ask(state, limits)
    assert line.startswith("Stopped after 2 answers of the model without an end")
    assert "agents.defaults.maxTurns" in line
    assert not turnlimits.ask(State(turns=1_000), Limits(turns=0))[1]


def test_calls_are_counted_before_they_are_made() -> None:
    state, line = turnlimits.call(State(), Limits(calls=3), 3)
    assert (state.calls, line) == (3, "")
    state, line = turnlimits.call(state, Limits(calls=3), 1)
    assert state.calls == 3
    assert line.startswith("Stopped after 3 tool calls, for 3 is the limit for one run (agents.defaults.maxToolCalls)")
    assert turnlimits.call(State(calls=9_000), Limits(calls=0), 9)[1] == ""


def test_refusals_end_it_until_a_person_says_something() -> None:
    state, limits = State(), Limits(refusals=3)
    for kind in ("denied", "refused"):
        state = turnlimits.ended(state, [result(kind)] * 6)
        assert not turnlimits.stuck(state, limits, [result(kind)])
    state = turnlimits.ended(state, [result("blocked"), result()])
    assert turnlimits.stuck(state, limits, [result("blocked"), result()]) == (
        "Stopped: calls were refused 3 times. The last was exec: Not run: the owner said no. "
        "Allow what is needed, or say how else to go on."
    )
    assert not turnlimits.stuck(state, limits, [result("other")])
    assert not turnlimits.stuck(state, limits, [])
    assert not turnlimits.stuck(state, Limits(refusals=0), [result("denied")])
    assert turnlimits.heard(state) == State()
    assert turnlimits.heard(State(turns=3)) == State(turns=3)


def test_what_is_no_refusal() -> None:
    for other in (result(), result("unknown-tool"), result("denied", is_error=False)):
        assert turnlimits.ended(State(), [other]) == State()
