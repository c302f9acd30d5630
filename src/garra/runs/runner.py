"""All runs of this process: accepted, one at a time a session, watched, stopped."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from garra.core import lanes
from garra.core.errors import Failure, FailureKind, Unavailable, UserError
from garra.core.events import Ending, RunBody, RunEnded, RunEvent
from garra.core.ids import RunId, SessionId, SessionKey
from garra.core.lanes import Reason
from garra.core.value import frozen, replace
from garra.io.log import about
from garra.runs.lane import Lane
from garra.runs.run import Run, Turn
from garra.sdk.ports import Clock, Spawn

log = logging.getLogger(__name__)

Listener = Callable[[RunEvent], None]
KEPT = 1_000
"""How many ended runs are remembered, for clients that ask again."""
KEPT_MS = 300_000
"""How long an ended run is remembered."""
YOUNG_S = 0.05
"""So long a run counts as one that has just begun: what it does until its model is asked takes less."""

DROPPED: dict[Reason, str] = {
    "duplicate": "This message came twice; it is answered once.",
    "busy": "The agent is busy and set to take nothing meanwhile. Send it again when it has answered.",
    "full": "Too many messages wait already; this one was not taken. Send it again when the agent has answered.",
    "summarized": "Too many messages wait; this one is told to the agent in brief with the next.",
    "cancelled": "Stopped before it began.",
}


@frozen
class Ports:
    """What running needs from the rest of the house.

    `enrol` makes sure that the session exists and gives its id; raises UserError for what cannot be run at all.
    `keep` stores a prompt at the end of its session's transcript. `drive` runs to the end and never raises.
    """

    clock: Clock
    spawn: Spawn
    enrol: Callable[[Turn], Awaitable[SessionId]]
    keep: Callable[[Run], Awaitable[None]]
    drive: Callable[[Run, Lane, str], Awaitable[RunEnded]]
    settings: Callable[[], lanes.Settings]


class Runs:
    """The table of runs. All calls are made on the event loop's thread."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._runs: OrderedDict[RunId, Run] = OrderedDict()
        self._lanes: dict[SessionKey, Lane] = {}
        self._entering: dict[RunId, asyncio.Future[Run]] = {}
        self._listeners: list[Listener] = []
        self._closing = False
        self.held = ""
        """Why nothing may begin, in words; empty where it may."""

    async def submit(self, turn: Turn) -> Run:
        """Accept a turn and give its run, which may have to wait. The same run id gives the same run.

        A turn that begins at once is on disk when this returns. Raises UserError for what cannot be run, Unavailable
        while the process is stopping.
        """
        known = self._runs.get(turn.run_id)
        if known is not None:
            return known
        if self._closing:
            raise Unavailable("The gateway is stopping; send it again when it is back.", retryable=True)
        if self.held:
            raise Unavailable(self.held, retryable=True)
        entering = self._entering.get(turn.run_id)
        if entering is not None:
            return await asyncio.shield(entering)
        entering = self._entering[turn.run_id] = asyncio.get_running_loop().create_future()
        try:
            run = await self._enter(turn)
        except BaseException as error:
            entering.set_exception(error)
            entering.exception()
            raise
        finally:
            del self._entering[turn.run_id]
        entering.set_result(run)
        return run

    async def _enter(self, turn: Turn) -> Run:
        ports = self._ports
        run = Run(turn, await ports.enrol(turn), ports.clock.now_ms())
        lane = self._lanes.get(turn.session_key)
        if lane is None:
            lane = self._lanes[turn.session_key] = Lane(ports.settings(), self, ports.clock)
        lane.configure(turn.lane or ports.settings())
        self._runs[run.run_id] = run
        lane.arrive(run)
        if run.state == "running":
            await run.stored.wait()
        return run

    def find(self, run_id: str) -> Run | None:
        return self._runs.get(RunId(run_id))

    def active(self, session_key: str) -> Run | None:
        """The run that is running in this session."""
        lane = self._lanes.get(SessionKey(session_key))
        return lane.head if lane else None

    def crowded(self, session_key: str) -> bool:
        """Whether a run of another session has just begun. One that waits for its model wants nothing of the loop."""
        since = self._ports.clock.monotonic() - YOUNG_S
        heads = ((key, lane.head) for key, lane in self._lanes.items())
        return any(head is not None and head.begun > since and key != session_key for key, head in heads)

    def every(self) -> Sequence[Run]:
        """All runs that have not ended."""
        return [run for run in self._runs.values() if run.state != "ended"]

    async def abort(self, session_key: str, run_id: str | None = None, reason: str = "rpc") -> list[RunId]:
        """Stop a session's runs (or one of them), running and waiting; gives those that were stopped, once they have.

        Nothing to stop is an empty list.
        """
        lane = self._lanes.get(SessionKey(session_key))
        if lane is None:
            return []
        hit = [run for run in (lane.head, *lane.waiting) if run is not None and run_id in (None, run.run_id)]
        for run in hit:
            run.cancel.set(reason)
        lane.cancel([run.run_id for run in hit])
        for run in hit:
            await run.wait()
        return [run.run_id for run in hit]

    def cancel_all(self, reason: str) -> list[Run]:
        """Stop all runs of all sessions, running and waiting, at once; gives them, before they have ended."""
        hit = list(self.every())
        for run in hit:
            run.cancel.set(reason)
        for lane in list(self._lanes.values()):
            lane.cancel(None)
        return hit

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called with every event of every run, in order. It must not block, and not raise."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def emit(self, run: Run, body: RunBody) -> None:
        """Number one event of `run` and tell everybody."""
        run.seq += 1
        event = RunEvent(
            run.run_id, run.session_key, run.session_id, run.agent_id, run.seq, self._ports.clock.now_ms(), body
        )
        for listener in self._listeners:
            listener(event)

    async def drain(self, timeout_s: float) -> bool:
        """Take no new starts and wait for what runs; True when everything has ended."""
        self._closing = True
        running = [run for run in self._runs.values() if run.state == "running"]
        try:
            async with asyncio.timeout(timeout_s):
                for run in running:
                    await run.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Stop everything."""
        self._closing = True
        for key, lane in list(self._lanes.items()):
            await self.abort(key, reason="shutdown")
            lane.close()

    def begin(self, lane: Lane, runs: Sequence[Run], brief: str) -> None:
        """A lane starts `runs` as one: the first carries it, the others end with it."""
        run = runs[0]
        run.joined = list(runs[1:])
        for each in run.joined:
            each.led_by = run.run_id
        for each in runs:
            each.state = "running"
        run.begun = self._ports.clock.monotonic()
        self._ports.spawn(self._carry(run, lane, brief), f"run {run.session_key}")

    def drop(self, run: Run, reason: Reason) -> None:
        """A lane will not start `run`."""
        kind = FailureKind.CANCELLED if reason == "cancelled" else FailureKind.REFUSED
        ending: Ending = "aborted" if reason == "cancelled" else "error"
        line = DROPPED[reason]
        now = self._ports.clock.now_ms()
        self._end(run, RunEnded(ending, "" if reason == "cancelled" else line, None, Failure(kind, line), now, now))

    async def _carry(self, run: Run, lane: Lane, brief: str) -> None:
        """Carry a run to its end. Whatever happens, it ends, and the lane goes on."""
        about(run_id=run.run_id, session_id=run.session_id, agent_id=run.agent_id)
        ended = self._broken(run, "error", "A fault of Garra's own ended this run; the log has it. Send it again.")
        try:
            await self._keep(run)
            ended = await self._ports.drive(run, lane, brief)
        except asyncio.CancelledError:
            ended = self._broken(run, "aborted", "Stopped: the gateway is shutting down.")
        except UserError as error:
            ended = self._broken(run, "error", error.message)
        finally:
            self._finish(run, lane, ended)

    async def _keep(self, run: Run) -> None:
        for each in (run, *run.joined):
            await self._ports.keep(each)
            each.stored.set()

    def _finish(self, run: Run, lane: Lane, ended: RunEnded) -> None:
        self._end(run, replace(ended, ended_at=self._ports.clock.now_ms()))
        silent = ended.ending == "ok"
        for each in run.joined:
            reply = "" if silent else ended.reply
            end = RunEnded(ended.ending, reply, None, ended.failure, each.started_at, ended.ended_at, silent=silent)
            self._end(each, end)
        lane.ended()
        self._forget(run, lane)

    def _broken(self, run: Run, ending: Ending, line: str) -> RunEnded:
        kind = FailureKind.CANCELLED if ending == "aborted" else FailureKind.UNKNOWN
        reply = "" if ending == "aborted" else line
        return RunEnded(ending, reply, None, Failure(kind, line), run.started_at, self._ports.clock.now_ms())

    def _end(self, run: Run, ended: RunEnded) -> None:
        if run.state == "ended":
            return
        run.end(ended)
        self.emit(run, ended)

    def _forget(self, run: Run, lane: Lane) -> None:
        """Drop what nobody asks for any more."""
        if lane.idle:
            self._lanes.pop(run.session_key, None)
        old = self._ports.clock.now_ms() - KEPT_MS
        while self._runs:
            first = next(iter(self._runs.values()))
            if first.ended is None or (len(self._runs) <= KEPT and first.ended.ended_at > old):
                return
            self._runs.popitem(last=False)
