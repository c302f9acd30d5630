"""One session's lane: one run at a time, and what becomes of messages that come meanwhile.

Every message that is told of is started, consumed by the running run, or dropped with its reason; nothing is lost.
Effects are carried out by the lane's driver, which reports back with events.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, assert_never

from garra.core.value import frozen, replace

Mode = Literal["steer", "followup", "collect", "interrupt", "drop"]
Overflow = Literal["summarize", "old", "new"]
Reason = Literal["duplicate", "busy", "full", "summarized", "cancelled"]


REMEMBERED = 256
"""How many ids a lane remembers to know a message that comes twice."""
PATIENCE = 10
"""A waiting message is started after this many quiet windows, though others keep coming."""


@frozen
class Settings:
    """`mode` is for messages that name none. `debounce_ms` is the quiet time before waiting messages start."""

    mode: Mode = "steer"
    debounce_ms: int = 500
    cap: int = 20
    overflow: Overflow = "summarize"


@frozen
class Item:
    """One message. `id` is its run's; messages with another `route` (place, rights) never share a run: none is handed
    to a run of another route either.

    `text` is kept for the summary of what was dropped.
    """

    id: str
    at_ms: int
    text: str = ""
    route: str = ""
    mode: Mode | None = None


@frozen
class State:
    """`running` is the id of the run's first message, `route` its route. `steered` was handed to the run, which has not
    yet taken it; `open` says the run takes such messages. `summary` was dropped and waits to be told to the next run.
    """

    settings: Settings = field(default_factory=Settings)
    running: str | None = None
    route: str = ""
    open: bool = False
    stopping: bool = False
    steered: tuple[Item, ...] = ()
    queue: tuple[Item, ...] = ()
    summary: tuple[Item, ...] = ()
    seen: tuple[str, ...] = ()


@frozen
class Arrived:
    """A message came."""

    item: Item


@frozen
class Opened:
    """The run takes messages between its steps from now on, or no longer."""

    yes: bool


@frozen
class Consumed:
    """The run took these messages into its transcript."""

    ids: frozenset[str]


@frozen
class Refused:
    """The run could not take this message after all."""

    id: str


@frozen
class Ended:
    """The run ended, however it did."""

    now_ms: int


@frozen
class Woke:
    """The time of the last `Wake` has come."""

    now_ms: int


@frozen
class Cancelled:
    """Somebody stops these messages, waiting or running; `None` stops all of the lane."""

    ids: frozenset[str] | None = None


@frozen
class Configured:
    """The lane's settings changed."""

    settings: Settings


Event = Arrived | Opened | Consumed | Refused | Ended | Woke | Cancelled | Configured


@frozen
class Start:
    """Start one run with these messages; `summary` names those that were dropped for lack of room."""

    items: tuple[Item, ...]
    summary: tuple[Item, ...] = ()


@frozen
class Steer:
    """Hand it to the running run."""

    item: Item


@frozen
class Queued:
    """It waits, at `position` counted from 1."""

    item: Item
    position: int


@frozen
class Interrupt:
    """Stop the running run; `Ended` follows when it has."""

    run: str


@frozen
class Dropped:
    """It will not be run; its sender is told, but for duplicates. A steered message is taken back from the run."""

    item: Item
    reason: Reason


@frozen
class Wake:
    """Send `Woke` at this time; replaces an earlier one."""

    at_ms: int


Effect = Start | Steer | Queued | Interrupt | Dropped | Wake
Step = tuple[State, tuple[Effect, ...]]


def step(state: State, event: Event) -> Step:
    """What follows from one event."""
    match event:
        case Arrived(item):
            return _arrived(state, item)
        case Opened(yes):
            return replace(state, open=yes and state.running is not None), ()
        case Consumed(ids):
            return replace(state, steered=tuple(item for item in state.steered if item.id not in ids)), ()
        case Refused(id_):
            return _refused(state, id_)
        case Ended(now_ms):
            waiting = (*(replace(item, mode="interrupt") for item in state.steered), *state.queue)
            return _drain(replace(state, running=None, open=False, stopping=False, steered=(), queue=waiting), now_ms)
        case Woke(now_ms):
            return _drain(state, now_ms)
        case Cancelled(ids):
            return _cancelled(state, ids)
        case Configured(settings):
            return replace(state, settings=settings), ()
        case _:
            assert_never(event)


def _arrived(state: State, item: Item) -> Step:
    if item.id in state.seen:
        return state, (Dropped(item, "duplicate"),)
    state = replace(state, seen=(*state.seen, item.id)[-REMEMBERED:])
    item = replace(item, mode=item.mode or state.settings.mode)
    if state.running is None:
        return _idle(state, item)
    match item.mode:
        case "steer" if _takes(state, item):
            return replace(state, steered=(*state.steered, item)), (Steer(item),)
        case "drop":
            return state, (Dropped(item, "busy"),)
        case "interrupt":
            return _interrupt(state, item)
        case _:
            return _enqueue(state, item)


def _takes(state: State, item: Item) -> bool:
    """Whether the running run may be handed this message: not before one like it that had no room."""
    before = any(other.route == item.route and other.mode == "steer" for other in state.queue)
    room = len(state.steered) < state.settings.cap and not before
    return state.open and not state.stopping and room and item.route == state.route


def _idle(state: State, item: Item) -> Step:
    """No run: start at once, unless others wait for their quiet time."""
    if not state.queue:
        return _start(replace(state, queue=(item,)))
    state, effects = _enqueue(state, item)
    state, more = _drain(state, item.at_ms)
    return state, (*effects, *more)


def _enqueue(state: State, item: Item) -> Step:
    settings, queue, summary = state.settings, state.queue, state.summary
    dropped: tuple[Effect, ...] = ()
    if len(queue) >= max(1, settings.cap):
        if settings.overflow == "new":
            return state, (Dropped(item, "full"),)
        oldest, queue = queue[0], queue[1:]
        if settings.overflow == "summarize":
            summary = (*summary, oldest)
        dropped = (Dropped(oldest, "summarized" if settings.overflow == "summarize" else "full"),)
    queue = (*queue, item)
    return replace(state, queue=queue, summary=summary), (*dropped, Queued(item, len(queue)))


def _interrupt(state: State, item: Item) -> Step:
    """The newest goes first, with what waits from the same place; the run is stopped once."""
    assert state.running is not None
    ours = (*(replace(other, mode="interrupt") for other in state.queue if other.route == item.route), item)
    others = tuple(other for other in state.queue if other.route != item.route)
    stop = () if state.stopping else (Interrupt(state.running),)
    after = replace(state, queue=(*ours, *others), stopping=True)
    return after, (*stop, Queued(item, len(ours)))


def _refused(state: State, id_: str) -> Step:
    back = tuple(replace(item, mode="followup") for item in state.steered if item.id == id_)
    rest = tuple(item for item in state.steered if item.id != id_)
    queue = (*back, *state.queue)
    return replace(state, steered=rest, queue=queue), tuple(Queued(item, 1) for item in back)


def _cancelled(state: State, ids: frozenset[str] | None) -> Step:
    def hit(id_: str) -> bool:
        return ids is None or id_ in ids

    gone = tuple(Dropped(item, "cancelled") for item in (*state.steered, *state.queue) if hit(item.id))
    after = replace(
        state,
        steered=tuple(item for item in state.steered if not hit(item.id)),
        queue=tuple(item for item in state.queue if not hit(item.id)),
        summary=() if ids is None else state.summary,
    )
    if state.running is None or state.stopping or not hit(state.running):
        return after, gone
    return replace(after, stopping=True), (*gone, Interrupt(state.running))


def due(state: State) -> int:
    """When the waiting messages may start, in milliseconds since 1970; at once for those a stopped run left."""
    first, last = state.queue[0], state.queue[-1]
    if first.mode == "interrupt":
        return first.at_ms
    quiet = state.settings.debounce_ms
    return min(last.at_ms + quiet, first.at_ms + PATIENCE * quiet)


def _drain(state: State, now_ms: int) -> Step:
    if state.running is not None or not state.queue:
        return state, ()
    at_ms = due(state)
    return _start(state) if now_ms >= at_ms else (state, (Wake(at_ms),))


def _start(state: State) -> Step:
    """Start the first waiting message, with those behind it that it may share a run with."""
    first = state.queue[0]
    count = 1
    if first.mode in {"collect", "interrupt"}:
        joined = (item.mode == first.mode and item.route == first.route for item in state.queue)
        count = next((index for index, joins in enumerate(joined) if not joins), len(state.queue))
    items = state.queue[:count]
    after = replace(state, running=first.id, route=first.route, queue=state.queue[count:], summary=())
    return after, (Start(items, state.summary),)
