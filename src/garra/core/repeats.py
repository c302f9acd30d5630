"""Does a run go round in circles? The same call again and again is first named to the model, then ends the run.

As usual: a call that fails alike three times in a row, or answers alike five times, earns the note; one more ends the
run. One that looks how something stands may answer alike ten times before the note, twenty before the end. A call whose
answers differ may be repeated twenty times in a row. A longer circle, where the same call had the same answer but
others came between, or two calls take turns, is noted at ten and ended at twenty; so is calling tools that do not
exist, at five and ten.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field, replace

from garra.core.messages import ToolCall, ToolResult
from garra.core.value import frozen

FAILING, ALIKE, DIFFERING, CIRCLE, LIMIT, UNKNOWN = 3, 5, 20, 10, 20, 10

POLLS: Mapping[str, frozenset[str]] = {
    "process": frozenset({"poll", "log", "list"}),
    "subagents": frozenset({"list"}),
    "session_status": frozenset(),
    "sessions_list": frozenset(),
    "sessions_history": frozenset(),
}
"""Calls that look how something stands: a tool, and its actions (none named: any)."""


@frozen
class Settings:
    """`note` and `limit` count a call that had the same answer, over the run; `unknown` calls of what is no tool.
    `generic`, `ping_pong` and `polls` switch the detectors: one call, two that take turns, one that looks how something
    stands.
    """

    on: bool = True
    failing: int = FAILING
    alike: int = ALIKE
    differing: int = DIFFERING
    note: int = CIRCLE
    limit: int = LIMIT
    unknown: int = UNKNOWN
    generic: bool = True
    ping_pong: bool = True
    polls: bool = True


USUAL = Settings()


@frozen
class State:
    """`call` and `answer` are the last call and its answer, `before` the pair of both before that; `streak` counts the
    call in a row, `alike` its equal answers in a row, `turns` the pairs that took turns, `unknown` the calls of what is
    no tool. `totals` counts each pair of call and answer over the run; `over` are the calls that end it.
    """

    call: str = ""
    answer: str = ""
    before: str = ""
    failed: bool = False
    streak: int = 0
    alike: int = 0
    turns: int = 0
    unknown: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)
    over: frozenset[str] = frozenset()


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def fingerprint(call: ToolCall) -> str:
    """Equal for calls of one tool with equal arguments, whatever their order."""
    return digest(f"{call.name} {json.dumps(dict(call.arguments), sort_keys=True, default=str)}")


def may(state: State, call: ToolCall, settings: Settings = USUAL, *, known: bool = True) -> bool:
    """False when this call was named to the model as a repetition and comes yet again. `known`: it is a tool."""
    if not known and settings.on and settings.unknown and state.unknown >= settings.unknown:
        return False
    return not state.over or fingerprint(call) not in state.over


def step(
    state: State, call: ToolCall, result: ToolResult, settings: Settings = USUAL, *, known: bool = True
) -> tuple[State, bool]:
    """One call ended; True when the model is to be told with the result (see `note`)."""
    if not settings.on:
        return state, False
    name, answer = fingerprint(call), digest(result.text)
    same = name == state.call
    pair, last = name + answer, state.call + state.answer
    after = replace(
        state,
        call=name,
        answer=answer,
        before=last,
        failed=result.is_error,
        streak=state.streak + 1 if same else 1,
        alike=state.alike + 1 if pair == last and result.is_error == state.failed else 1,
        turns=state.turns + 1 if pair == state.before and not same else 1,
        unknown=state.unknown + (not known),
        totals={**state.totals, pair: state.totals.get(pair, 0) + 1},
    )
    ends = _ends(after, call, settings)
    if ends:
        after = replace(after, over=after.over | ends)
    return after, bool(ends) or _nears(after, settings, known=known)


def _ends(state: State, call: ToolCall, settings: Settings) -> frozenset[str]:
    """The calls that end the run when they come again."""
    total = state.totals[state.call + state.answer]
    hit = total >= settings.limit
    if _looks(call, settings) and not state.failed:
        hit = hit or state.alike >= settings.limit
    elif settings.generic:
        most = settings.failing if state.failed else settings.alike
        hit = hit or state.alike >= most or state.streak >= settings.differing
    ends = frozenset({state.call}) if hit else frozenset()
    if settings.ping_pong and state.turns >= settings.limit - 1:
        ends |= {state.call, state.before[: len(state.call)]}
    return ends


def _nears(state: State, settings: Settings, *, known: bool) -> bool:
    """Whether the model is told that it is on its way there."""
    if state.totals[state.call + state.answer] == settings.note:
        return True
    if settings.ping_pong and state.turns == settings.note - 1:
        return True
    return not known and bool(settings.unknown) and state.unknown in {max(1, settings.unknown // 2), settings.unknown}


def _looks(call: ToolCall, settings: Settings) -> bool:
    actions = POLLS.get(call.name)
    if not settings.polls or actions is None:
        return False
    return not actions or call.arguments.get("action") in actions


def note(state: State, call: ToolCall) -> str:
    """What the model is told with the result that earned it."""
    times = max(state.alike, state.streak, state.totals.get(state.call + state.answer, 0))
    if times == 1 and state.unknown > 1:
        return f"[{state.unknown} calls were of tools that do not exist. Use those you have, or say what you miss.]"
    how = "failed the same way" if state.failed else "been made"
    return f"[This exact {call.name} call has {how} {times} times. Do something else, or say what blocks you.]"
