"""How much of what strangers say is kept: so many messages of one, so many of all at one account, in a minute.

Times are milliseconds. A state is a value; `came` and `told` give the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final

from garra.core.value import frozen

MINUTE_MS: Final = 60_000
OF_ONE: Final = 20
OF_ALL: Final = 200


@frozen
class State:
    """What was kept of each sender in the minute from `since` on; `left_out` is what was not, and not yet told."""

    since: int = 0
    kept: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0


def came(state: State, sender: str, now_ms: int) -> tuple[State, bool]:
    """A stranger's message is here: whether to keep it. An empty `sender` is nobody in particular."""
    if not 0 <= now_ms - state.since < MINUTE_MS:
        state = State(now_ms, {}, state.left_out)
    of_one = state.kept.get(sender, 0)
    if (sender and of_one >= OF_ONE) or sum(state.kept.values()) >= OF_ALL:
        return replace(state, left_out=state.left_out + 1), False
    return replace(state, kept={**state.kept, sender: of_one + 1}), True


def told(state: State) -> tuple[State, int]:
    """How many were left out since this was last asked."""
    return replace(state, left_out=0), state.left_out
