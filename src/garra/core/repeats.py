"""Does a run go round in circles? The same call again and again is first named to the model, then ends the run.

Limits: a call that fails alike three times in a row, or answers alike five times, earns the note; one more ends the
run. A call whose answers differ (waiting for a job) may be repeated twenty times in a row. A longer circle, where the
same call had the same answer but others came between, is noted at ten and ended at twenty.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field, replace

from garra.core.messages import ToolCall, ToolResult
from garra.core.value import frozen

FAILING, ALIKE, DIFFERING, CIRCLE, LIMIT = 3, 5, 20, 10, 20


@frozen
class State:
    """`call` and `answer` are the last call and its answer; `streak` counts the call in a row, `alike` its equal
    answers in a row. `totals` counts each pair of call and answer over the run; `over` are the calls that end it.
    """

    call: str = ""
    answer: str = ""
    failed: bool = False
    streak: int = 0
    alike: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)
    over: frozenset[str] = frozenset()


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def fingerprint(call: ToolCall) -> str:
    """Equal for calls of one tool with equal arguments, whatever their order."""
    return digest(f"{call.name} {json.dumps(dict(call.arguments), sort_keys=True, default=str)}")


def may(state: State, call: ToolCall) -> bool:
    """False when this call was already named to the model as a repetition and comes yet again."""
    return fingerprint(call) not in state.over


def step(state: State, call: ToolCall, result: ToolResult) -> tuple[State, bool]:
    """One call ended; True when the model is to be told with the result (see `note`)."""
    name, answer = fingerprint(call), digest(result.text)
    same = name == state.call
    alike = state.alike + 1 if same and answer == state.answer and result.is_error == state.failed else 1
    streak = state.streak + 1 if same else 1
    pair = name + answer
    total = state.totals.get(pair, 0) + 1
    after = replace(
        state,
        call=name,
        answer=answer,
        failed=result.is_error,
        streak=streak,
        alike=alike,
        totals={**state.totals, pair: total},
    )
    last = total >= LIMIT or streak >= DIFFERING or alike >= (FAILING if result.is_error else ALIKE)
    if last:
        after = replace(after, over=after.over | {name})
    return after, last or total == CIRCLE


def note(state: State, call: ToolCall) -> str:
    """What the model is told with the result that earned it."""
    times = max(state.alike, state.streak, state.totals.get(state.call + state.answer, 0))
    how = "failed the same way" if state.failed else "been made"
    return f"[This exact {call.name} call has {how} {times} times. Do something else, or say what blocks you.]"
