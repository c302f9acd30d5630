"""Two bots that answer each other: how many turns a pair may have before it is left alone for a while."""

from __future__ import annotations

from dataclasses import field

from garra.core.value import frozen


@frozen
class Settings:
    """`most` events of a pair within `window_ms`; one more, and the pair is not heard for `cooldown_ms`."""

    on: bool = True
    most: int = 20
    window_ms: int = 60_000
    cooldown_ms: int = 60_000


@frozen
class State:
    """`times` of what was let through, newest last; `until` when the pair is heard again. Milliseconds since 1970."""

    settings: Settings = field(default_factory=Settings)
    times: tuple[int, ...] = ()
    until: int = 0


@frozen
class Heard:
    """A bot said something to ours."""

    now_ms: int


@frozen
class Pass:
    """It may start a turn."""


@frozen
class Hush:
    """It may not. `first`: the pair has just gone too far."""

    first: bool


Event = Heard
Effect = Pass | Hush


def step(state: State, event: Event) -> tuple[State, Effect]:
    """What follows from one event of a pair."""
    settings, now = state.settings, event.now_ms
    if not settings.on:
        return state, Pass()
    if now < state.until:
        return state, Hush(first=False)
    times = tuple(at for at in state.times if at > now - settings.window_ms)
    if len(times) >= settings.most:
        return State(settings, (), now + settings.cooldown_ms), Hush(first=True)
    return State(settings, (*times, now)), Pass()
