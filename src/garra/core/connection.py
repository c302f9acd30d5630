"""One connection's life as a pure machine: challenged → connecting → open → closed.

`step(state, event)` gives the next state and what is to be done, in order. It knows no socket and no clock: times are
monotonic seconds that come with the events.

Facts (OpenClaw's gateway): the first frame must be `connect`; a handshake takes at most 15 s; at most 16 frames wait
while it is judged; after it a ping each 25 s, and 25 s for the pong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, assert_never

from garra.core.errors import GarraError, UserError
from garra.core.frames import Frame, Request, Stray
from garra.core.value import frozen

HANDSHAKE_S: Final = 15.0
PING_S: Final = 25.0
HELD: Final = 16

CONNECT_FIRST: Final = "invalid handshake: first request must be connect"


@frozen
class State:
    """`due` is when time alone changes something; `held` waits for the end of the handshake."""

    phase: Literal["challenged", "connecting", "open", "closed"] = "challenged"
    due: float = 0.0
    held: tuple[Request | Stray, ...] = ()
    pinged: bool = False


@frozen
class Arrived:
    """A frame came."""

    frame: Frame


@frozen
class Admitted:
    """The handshake was judged well, and hello-ok is sent."""

    now: float


@frozen
class Refused:
    """The handshake was judged badly: the error to answer, and how to close."""

    request_id: str | float
    error: GarraError
    code: int
    reason: str


@frozen
class Beat:
    """Time went on."""

    now: float


@frozen
class Ponged:
    """The other side answered a ping."""


@frozen
class Ended:
    """The gateway ends it: shutdown, revocation, a slow reader."""

    code: int
    reason: str


@frozen
class Lost:
    """The connection is gone."""


Event = Arrived | Admitted | Refused | Beat | Ponged | Ended | Lost


@frozen
class Answer:
    """Send an error response."""

    request_id: str | float
    error: GarraError


@frozen
class Close:
    """Close with this code and reason."""

    code: int
    reason: str


@frozen
class Judge:
    """Judge this `connect`; then comes Admitted or Refused."""

    request: Request


@frozen
class Dispatch:
    """Carry out this request."""

    request: Request


@frozen
class Ping:
    """Send a ping."""


@frozen
class Cut:
    """The other side is dead: drop the connection without farewell."""


Effect = Answer | Close | Judge | Dispatch | Ping | Cut
Step = tuple[State, tuple[Effect, ...]]


def start(now: float) -> State:
    """A connection that was just sent its challenge."""
    return State(due=now + HANDSHAKE_S)


def step(state: State, event: Event) -> Step:
    """What `event` makes of `state`. A closed connection hears nothing more."""
    if state.phase == "closed":
        return state, ()
    match event:
        case Arrived(frame):
            return _arrived(state, frame)
        case Beat(now):
            return _beat(state, now)
        case Ponged():
            return replace(state, pinged=False), ()
        case Admitted(now):
            opened = State("open", now + PING_S)
            return opened, tuple(_answer(frame) for frame in state.held)
        case Refused(request_id, error, code, reason):
            return _closed(state), (Answer(request_id, error), Close(code, reason))
        case Ended(code, reason):
            return _closed(state), (Close(code, reason),)
        case Lost():
            return _closed(state), ()
        case _:
            assert_never(event)


def _closed(state: State) -> State:
    return State("closed", state.due)


def _arrived(state: State, frame: Frame) -> Step:
    if state.phase == "open":
        return state, () if frame is None else (_answer(frame),)
    if state.phase == "challenged":
        return _first(state, frame)
    if frame is None:
        return state, ()
    if len(state.held) == HELD:
        return _closed(state), (Close(1008, "too many pending handshake frames"),)
    return replace(state, held=(*state.held, frame)), ()


def _first(state: State, frame: Frame) -> Step:
    match frame:
        case None:
            return _closed(state), (Close(1000, ""),)
        case Stray():
            return _closed(state), (Close(1008, "invalid request frame"),)
        case Request(method="connect"):
            return replace(state, phase="connecting"), (Judge(frame),)
        case Request():
            answer = Answer(frame.id, UserError(CONNECT_FIRST))
            return _closed(state), (answer, Close(1008, CONNECT_FIRST))
        case _:
            assert_never(frame)


def _answer(frame: Request | Stray) -> Effect:
    if isinstance(frame, Request):
        return Dispatch(frame)
    return Answer(frame.id, UserError(f"invalid request frame: {frame.fault}"))


def _beat(state: State, now: float) -> Step:
    if now < state.due:
        return state, ()
    if state.phase != "open":
        return _closed(state), (Close(1000, ""),)
    if state.pinged:
        return _closed(state), (Cut(),)
    return replace(state, due=now + PING_S, pinged=True), (Ping(),)
