"""How much one run may do: answers of a model, calls of tools, calls that were refused. Each end has its own line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from garra.core.messages import ToolResult
from garra.core.value import frozen

REFUSED: Final = frozenset({"denied", "refused", "blocked"})
"""What the details of a result say (`kind`) where a policy or a person kept the call from being made."""


@frozen
class Limits:
    """0 is no limit. `refusals` are answers with refused calls since a person last said something."""

    turns: int = 200
    calls: int = 1_000
    refusals: int = 6


@frozen
class State:
    """What a run has done."""

    turns: int = 0
    calls: int = 0
    refusals: int = 0


def ask(state: State, limits: Limits) -> tuple[State, str]:
    """The model is to be asked; the line that ends the run instead, if any."""
    if limits.turns and state.turns >= limits.turns:
        return state, (
            f"Stopped after {limits.turns} answers of the model without an end, the limit for one run "
            "(agents.defaults.maxTurns). Say how to go on."
        )
    return replace(state, turns=state.turns + 1), ""


def call(state: State, limits: Limits, number: int) -> tuple[State, str]:
    """An answer asks for `number` calls; the line that ends the run instead, if any."""
    if limits.calls and state.calls + number > limits.calls:
        return state, (
            f"Stopped after {state.calls} tool calls, for {limits.calls} is the limit for one run "
            "(agents.defaults.maxToolCalls). Say how to go on."
        )
    return replace(state, calls=state.calls + number), ""


def heard(state: State) -> State:
    """A person said something: what was refused before may be asked of them anew."""
    return replace(state, refusals=0) if state.refusals else state


def ended(state: State, results: Sequence[ToolResult]) -> State:
    """The calls of one answer have their results. Those refused together count once: the model had not seen one of them
    when it asked for the others.
    """
    return replace(state, refusals=state.refusals + 1) if any(map(was_refused, results)) else state


def stuck(state: State, limits: Limits, results: Sequence[ToolResult]) -> str:
    """Why the run is to stop and ask, after `results`; empty where it goes on."""
    last = next(filter(was_refused, reversed(results)), None)
    if not limits.refusals or state.refusals < limits.refusals or last is None:
        return ""
    why = " ".join(last.text.split())[:200]
    return (
        f"Stopped: calls were refused {state.refusals} times. The last was {last.name}: {why} "
        "Allow what is needed, or say how else to go on."
    )


def was_refused(result: ToolResult) -> bool:
    details: Any = result.details
    return result.is_error and isinstance(details, Mapping) and details.get("kind") in REFUSED
