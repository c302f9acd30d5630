"""Runs as wire events: what each connection sees of each run, in order.

One listener of the run table. Text and tool events go out as they come; what needs the session's row waits for it in
the background and comes after. Nothing here outlives its run.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from garra.core.events import RunEnded, RunEvent
from garra.core.value import frozen
from garra.gateway.history import displayed
from garra.gateway.method import Caller, Link
from garra.gateway.parts import Broadcast
from garra.gateway.stream import Emit, Place, RunView
from garra.sdk.ports import Clock, Spawn

TOOL_EVENTS = "tool-events"
SCOPED = "session-scoped-events"
ALL = "sessions"
KEPT = 512
ROW_FACTS = ("updatedAt", "sessionId", "kind", "label", "displayName", "status", "hasActiveRun", "archived")


def topic(session_key: str) -> str:
    """What a connection watches to get one session's messages."""
    return f"session:{session_key}"


def hears(link: Link, session_key: str) -> bool:
    """Whether a connection gets `chat` and `agent` events of a session: all do, but those who asked for less."""
    return SCOPED not in link.who.caps or topic(session_key) in link.watching


def watches(link: Link, session_key: str) -> bool:
    return ALL in link.watching or topic(session_key) in link.watching


class Timer(Protocol):
    def cancel(self) -> None: ...


Later = Callable[[float, Callable[[], None]], Timer]


@frozen
class Desk:
    """What the projector is given. `row` builds a session's row, None when there is no such session; `place` gives the
    number of a stored message within its session, from 1; `ended` is told the id of each run that ended.
    """

    hub: Broadcast
    clock: Clock
    later: Later
    spawn: Spawn
    row: Callable[[str], Awaitable[dict[str, Any] | None]]
    place: Callable[[str, str], Awaitable[int | None]]
    ended: Callable[[str], None]


class Start:
    """A run that is asked for but not yet answered for: its events wait until `release`."""

    __slots__ = ("_pump", "link", "open", "phases", "watch")

    def __init__(self, link: Link, pump: Callable[[Watch], None], *, phases: bool) -> None:
        self.link, self.phases = link, phases
        self.open = False
        self.watch: Watch | None = None
        self._pump = pump

    def release(self) -> None:
        """The one who asked is sent its answer, and hears of the run once it has read that."""
        self.open = True
        self.link.fence()
        if self.watch:
            self._pump(self.watch)


class Watch:
    """One run that is shown: what waits to be sent, and the row it is sent with."""

    __slots__ = ("busy", "count", "row", "start", "timer", "view", "waiting")

    def __init__(self, view: RunView, start: Start | None) -> None:
        self.view, self.start = view, start
        self.timer: Timer | None = None
        self.waiting: deque[Emit] = deque()
        self.row: dict[str, Any] | None = None
        self.count: int | None = None
        self.busy = False


class Projector:
    """Shows runs to connections. `listen` is the run table's listener."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._runs: dict[str, Watch] = {}
        self._starts: OrderedDict[str, Start] = OrderedDict()
        self._taps: dict[str, Callable[[RunEvent], None]] = {}

    @contextmanager
    def expected(self, run_id: str, caller: Caller, *, phases: bool = True) -> Iterator[Start]:
        """While `caller` is being answered for the run it asks for, the run's events wait: a client that hears of a
        run before it knows that it has one does not know what to do with it. They go out on `release`, right after
        the block; to `caller` behind a fence, for a client that reads the answer and the whole run in one go deals
        with the run first (OpenClaw's terminal UI then waits for ever for a run that has ended).
        """
        start = self._starts[run_id] = Start(caller.link, self._pump, phases=phases)
        while len(self._starts) > KEPT:
            self._starts.popitem(last=False)
        try:
            yield start
        finally:
            self._desk.later(0, start.release)

    def tap(self, run_id: str, hear: Callable[[RunEvent], None]) -> Callable[[], None]:
        """Hear every event of one run, as it comes; gives what ends it."""
        self._taps[run_id] = hear
        return lambda: self._taps.pop(run_id, None) and None

    def listen(self, event: RunEvent) -> None:
        if hear := self._taps.get(event.run_id):
            hear(event)
        watch = self._runs.get(event.run_id) or self._begin(event)
        now = self._desk.clock.monotonic()
        watch.waiting.extend(watch.view.on(event, now))
        ended = isinstance(event.body, RunEnded)
        if ended:
            self._close(event.run_id, watch)
            self._desk.ended(event.run_id)
        elif (wait := watch.view.due(now)) is not None:
            self._pace(watch, wait)
        self._pump(watch)

    async def aborted(self, run_ids: Iterable[str], reason: str) -> None:
        """Tell of an abort now; gives back when it went out."""
        for run_id in run_ids:
            if watch := self._runs.get(run_id):
                clock = self._desk.clock
                watch.waiting.extend(watch.view.aborted(reason, clock.now_ms(), clock.monotonic()))
                self._pump(watch)
                while watch.busy or watch.waiting:
                    await clock.sleep(0.001)

    def text(self, session_key: str) -> tuple[str, str, int] | None:
        """(run id, words so far, start) of the run that goes on in a session."""
        for run_id, watch in self._runs.items():
            if watch.view.session_key == session_key:
                return run_id, watch.view.words.text, watch.view.started_at
        return None

    def tell(self, run_id: str, session_key: str, agent_id: str, text: str) -> None:
        """The gateway itself answers `run_id`: its words are that run's final words, stored nowhere."""
        emit = RunView(Place(run_id, session_key, "", agent_id), 0).said(text, self._desk.clock.now_ms())
        self._desk.hub.publish(emit.event, emit.payload, where=lambda link: hears(link, session_key))

    def changed(self, session_key: str, agent_id: str, **about: Any) -> None:
        """A session changed in another way than by a run: those who watch the list are sent its new row."""
        if self._desk.hub.watched(ALL):
            payload = {"sessionKey": session_key, "agentId": agent_id, **about, "ts": self._desk.clock.now_ms()}
            self._desk.spawn(self._tell(payload), "session row")

    def gone(self, payload: dict[str, Any]) -> None:
        """A session is no more: those who watch the list are told."""
        self._desk.hub.publish("sessions.changed", payload, where=lambda link: ALL in link.watching)

    def _begin(self, event: RunEvent) -> Watch:
        start = self._starts.pop(event.run_id, None)
        place = Place(event.run_id, event.session_key, event.session_id, event.agent_id)
        view = RunView(place, event.ts, phases=start is not None and start.phases)
        watch = self._runs[event.run_id] = Watch(view, start)
        if start:
            start.watch = watch
        return watch

    def _close(self, run_id: str, watch: Watch) -> None:
        self._runs.pop(run_id, None)
        if watch.timer:
            watch.timer.cancel()
            watch.timer = None

    def _pace(self, watch: Watch, wait: float) -> None:
        if wait <= 0:
            self._flush(watch)
        elif watch.timer is None:
            watch.timer = self._desk.later(wait, lambda: self._flush(watch))

    def _flush(self, watch: Watch) -> None:
        if watch.timer:
            watch.timer.cancel()
            watch.timer = None
        clock = self._desk.clock
        watch.waiting.extend(watch.view.flush(clock.now_ms(), clock.monotonic()))
        self._pump(watch)

    def _pump(self, watch: Watch) -> None:
        """Send what waits, in order, as far as it can be sent without waiting."""
        if watch.busy or (watch.start and not watch.start.open):
            return
        while watch.waiting:
            emit = watch.waiting[0]
            if emit.to in ("readers", "tool"):
                self._send(watch, emit)
            elif self._wanted(watch, emit):
                watch.busy = True
                self._desk.spawn(self._fetch(watch), "session row")
                return
            watch.waiting.popleft()

    def _wanted(self, watch: Watch, emit: Emit) -> bool:
        hub = self._desk.hub
        return hub.watched(ALL) or (emit.to == "watchers" and hub.watched(topic(watch.view.session_key)))

    async def _fetch(self, watch: Watch) -> None:
        """Send the one at the head, which needs the session's row or its place; then go on."""
        emit = watch.waiting[0]
        try:
            await (self._stored(watch, emit) if emit.to == "watchers" else self._tell(emit.payload))
        finally:
            watch.busy = False
            watch.waiting.popleft()
        self._pump(watch)

    async def _tell(self, payload: dict[str, Any]) -> None:
        key = payload["sessionKey"]
        row = await self._desk.row(key)
        if row is not None:
            shown = {name: row[name] for name in ROW_FACTS if name in row}
            payload = {**payload, "session": row, **shown}
        self._desk.hub.publish("sessions.changed", payload, where=lambda link: ALL in link.watching)

    async def _stored(self, watch: Watch, emit: Emit) -> None:
        key, entry = watch.view.session_key, emit.payload["entry"]
        if not isinstance(entry.get("message"), dict):
            return
        if watch.count is None:
            watch.count = await self._desk.place(key, entry["id"])
        else:
            watch.count += 1
        if entry["message"].get("role") == "toolResult":
            return  # told as a tool event; a second telling makes clients read the session again
        watch.row = watch.row or await self._desk.row(key)
        message = displayed(entry, watch.count)
        payload = {
            "sessionKey": key,
            "agentId": watch.view.agent_id,
            "message": message,
            "messageId": entry["id"],
            "messageSeq": watch.count,
            **({"senderIsOwner": True} if message.get("role") == "user" else {}),
            **({"session": watch.row, "sessionId": watch.view.session_id} if watch.row else {}),
        }
        self._desk.hub.publish("session.message", payload, where=lambda link: watches(link, key))

    def _send(self, watch: Watch, emit: Emit) -> None:
        key = watch.view.session_key
        if emit.to == "readers":
            self._desk.hub.publish(emit.event, emit.payload, where=lambda link: hears(link, key))
            return
        starter = watch.start.link.who.conn_id if watch.start else None

        def own(link: Link) -> bool:
            return link.who.conn_id == starter and TOOL_EVENTS in link.who.caps

        self._desk.hub.publish("agent", emit.payload, where=own)
        self._desk.hub.publish("session.tool", emit.payload, where=lambda link: watches(link, key) and not own(link))
