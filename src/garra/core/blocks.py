"""An answer sent in blocks while it grows: in order, one at a time, and never out of order.

A block goes out when the one before it arrived. If one does not arrive in time, the line is broken: no further block
goes out (fewer is better than out of order), and the end of the answer brings what is missing. What has gone out is
never said again.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import assert_never

from garra.core import chunking
from garra.core.chunking import Blocks
from garra.core.value import frozen


@frozen
class State:
    """`text` is the message so far, `waiting` its end that is no block yet, `ready` blocks that wait for the one that
    is `away`. `sent` counts the blocks that went out, those of earlier messages too; `said` those of this one.
    """

    blocks: Blocks = field(default_factory=Blocks)
    text: str = ""
    waiting: str = ""
    ready: tuple[str, ...] = ()
    away: bool = False
    broken: bool = False
    sent: int = 0
    said: int = 0


@frozen
class Began:
    """A new message begins; what waits of the one before goes out first."""


@frozen
class Grew:
    """More words of the message."""

    delta: str


@frozen
class Arrived:
    """The block that was away is with the platform."""


@frozen
class Late:
    """The block that was away did not arrive in time."""


@frozen
class Unwritten:
    """The block that was away never left."""

    text: str


Event = Began | Grew | Arrived | Late | Unwritten


@frozen
class Send:
    """This block may go out, as number `number` of the answer, from 0."""

    number: int
    text: str


def step(state: State, event: Event) -> tuple[State, tuple[Send, ...]]:
    """What an event makes of the line, and the block that goes out because of it."""
    match event:
        case Began():
            ready = state.ready if state.broken else (*state.ready, *_last(state))
            return _next(replace(state, text="", waiting="", ready=ready, said=0))
        case Grew(delta):
            waiting, out = chunking.step(state.waiting, delta, state.blocks)
            grown = replace(state, text=state.text + delta, waiting=waiting, ready=(*state.ready, *out))
            return _next(grown)
        case Arrived():
            return _next(replace(state, away=False))
        case Late():
            return replace(state, away=False, broken=True), ()
        case Unwritten(text):
            back = replace(state, ready=(text, *state.ready), away=False, broken=True)
            return replace(back, sent=state.sent - 1, said=max(0, state.said - 1)), ()
        case _:
            assert_never(event)


def _last(state: State) -> tuple[str, ...]:
    return chunking.step(state.waiting, "", state.blocks, last=True)[1]


def _next(state: State) -> tuple[State, tuple[Send, ...]]:
    if state.away or state.broken or not state.ready:
        return state, ()
    block, *ready = state.ready
    gone = replace(state, ready=tuple(ready), away=True, sent=state.sent + 1, said=state.said + 1)
    return gone, (Send(state.sent, block),)


def rest(state: State, answer: str) -> str:
    """What is left to say of the whole answer: all of it, where it is not what went out before; empty for nothing."""
    text = state.text.strip()
    if not state.said or not answer.strip().startswith(text):
        return answer
    more = answer.strip()[len(text) :]
    return "\n\n".join(part for part in (*state.ready, (state.waiting + more).strip("\n")) if part.strip())
