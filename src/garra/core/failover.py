"""What comes after a call to a model that failed: a step machine.

Five levels, each when the one before has nothing left: the server's own short wait or a lost connection (`transport`),
the same call again after 250 and 500 ms (`operation`), the next login of the provider (`profile`), the next model
(`model`), and rest until the soonest login is free (`session`).

What ends at once: a stop by a person or a restart, a fault of this machine, a history that does not fit, a provider
that refuses the content. A call that makes something at the provider is never made twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from garra.core.errors import Failure, FailureKind
from garra.core.value import frozen

_Kind = FailureKind
Level = Literal["first", "transport", "operation", "profile", "model", "session"]

TRIES: Final = 2
"""So often the same call is made again."""
FIRST_MS: Final = 250
SHORT_MS: Final = 2_000
"""A server's own wait up to this is kept; a longer one is for another login, another model, or the person."""
ROTATIONS: Final = 1
"""Where another model could answer, limits and overload go to so many other logins first."""

FINAL: Final = frozenset(
    {_Kind.CANCELLED, _Kind.OVERFLOW, _Kind.FILTERED, _Kind.TOOL_LOOP, _Kind.BUDGET},
)
PASSING: Final = frozenset({_Kind.CUT, _Kind.NETWORK, _Kind.SERVER, _Kind.OVERLOADED, _Kind.EMPTY})
"""Faults that pass by themselves: the same call may be made again."""
LIMITS: Final = frozenset({_Kind.RATE_LIMIT, _Kind.OVERLOADED})
"""Faults after which it is known when another try makes sense."""
_OF_LOGIN: Final = frozenset({_Kind.AUTH, _Kind.BILLING, _Kind.NO_KEY, *LIMITS})


@frozen
class Attempt:
    """One call as a run's trace tells it. `result` is `success` or the failure's kind; `level` what led to the call;
    `wait_ms` how long was waited before it; `profile` the login it went by, empty where none is needed.
    """

    provider: str
    model: str
    result: str
    profile: str = ""
    level: Level = "first"
    status: int | None = None
    wait_ms: int = 0
    reason: str = ""


@frozen
class State:
    """`profiles` and `models` count those behind the present one; `tries` are repeats of the same call so far,
    `rotations` the logins changed for limits. `most` is how many repeats are allowed.
    """

    profiles: int = 0
    models: int = 0
    most: int = TRIES
    cap: int = ROTATIONS
    tries: int = 0
    rotations: int = 0


@frozen
class Failed:
    """The call failed. `creates`: it made something at the provider. `free_ms`: when the soonest login that rests is
    free, in milliseconds from now; None where none rests.
    """

    failure: Failure
    creates: bool = False
    free_ms: int | None = None


@frozen
class Moved:
    """The next model is asked, which has so many logins behind its first."""

    profiles: int = 0


Event = Failed | Moved


@frozen
class Again:
    """The same call once more, after a wait."""

    wait_ms: int
    level: Level


@frozen
class NextProfile:
    """The same call by the next login."""


@frozen
class NextModel:
    """The next model is asked; `Moved` follows."""


@frozen
class Suspend:
    """Nothing can be done before so many milliseconds are over; the person is told so."""

    wait_ms: int


@frozen
class Stop:
    """The failure is told."""


@frozen
class Go:
    """Make the call."""


Effect = Again | NextProfile | NextModel | Suspend | Stop | Go


def step(state: State, event: Event) -> tuple[State, Effect]:
    if isinstance(event, Moved):
        return replace(state, profiles=event.profiles, tries=0, rotations=0), Go()
    failure = event.failure
    if failure.kind in FINAL:
        return state, Stop()
    wait = None if event.creates else _again(state, failure)
    if wait is None:
        return _onward(state, failure, event.free_ms)
    asked = failure.retry_after_ms is not None or failure.kind is _Kind.NETWORK
    return replace(state, tries=state.tries + 1), Again(wait, "transport" if asked else "operation")


def _again(state: State, failure: Failure) -> int | None:
    """Milliseconds before the same call is made again; None where it is not. A limit is waited for once, and only
    where the server says how long.
    """
    asked = failure.retry_after_ms
    limited = failure.kind is _Kind.RATE_LIMIT and asked is not None
    most = state.most if failure.kind in PASSING else min(state.most, int(limited))
    if state.tries >= most:
        return None
    wait = asked if asked is not None else FIRST_MS << state.tries
    return wait if wait <= SHORT_MS else None


def _onward(state: State, failure: Failure, free_ms: int | None) -> tuple[State, Effect]:
    kind = failure.kind
    capped = kind in LIMITS
    turns = kind in _OF_LOGIN or (kind is _Kind.TIMEOUT and not state.models)
    spent = capped and state.models > 0 and state.rotations >= state.cap
    if state.profiles and turns and not spent:
        rotations = state.rotations + int(capped)
        return replace(state, profiles=state.profiles - 1, tries=0, rotations=rotations), NextProfile()
    if state.models:
        return replace(state, models=state.models - 1), NextModel()
    return (state, Suspend(free_ms)) if free_ms is not None else (state, Stop())
