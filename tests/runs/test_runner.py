"""Runs are accepted once, run one at a time a session, and always end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from garra.core import lanes
from garra.core.errors import FailureKind, UserError
from garra.core.events import RunEnded, RunEvent
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.io.clock import SystemClock
from garra.io.tasks import Tasks
from garra.runs.lane import Lane
from garra.runs.run import Run, Turn
from garra.runs.runner import YOUNG_S, Ports, Runs
from garra.sdk.ports import Clock
from garra.testing.clock import ManualClock


def turn(name: str, key: str = "agent:main:main", **more: Any) -> Turn:
    return Turn(RunId(name), SessionKey(key), AgentId("main"), f"say {name}", **more)


@dataclass
class House:
    """A driver that a test scripts, and what it saw."""

    runs: Runs
    kept: list[str] = field(default_factory=list)
    driven: list[str] = field(default_factory=list)
    events: list[RunEvent] = field(default_factory=list)
    most: int = 0
    now: dict[str, int] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    acts: dict[str, Callable[[Run], None]] = field(default_factory=dict)

    def hold(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    async def drive(self, run: Run, lane: Lane, brief: str) -> RunEnded:
        key = run.session_key
        self.now[key] = self.now.get(key, 0) + 1
        self.most = max(self.most, self.now[key])
        self.driven.append(run.run_id + (f" [{len(brief.splitlines()) - 1} left out]" if brief else ""))
        lane.open(yes=True)
        try:
            stopped = asyncio.Event()
            run.cancel.attach(stopped.set)
            if run.run_id in self.acts:
                self.acts[run.run_id](run)
            if gate := self.gates.get(run.run_id):
                waits = [asyncio.ensure_future(gate.wait()), asyncio.ensure_future(stopped.wait())]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()
            if run.cancel.is_set:
                return RunEnded("aborted", "", None, None, run.started_at, 0)
            return RunEnded("ok", f"did {run.run_id}", None, None, run.started_at, 0)
        finally:
            self.now[key] -= 1


@asynccontextmanager
async def house(
    settings: lanes.Settings | None = None, refuse: str = "", clock: Clock | None = None
) -> AsyncIterator[House]:
    settings = settings or lanes.Settings(debounce_ms=0)
    made: list[House] = []

    async def enrol(turn: Turn) -> SessionId:
        if refuse:
            raise UserError(refuse)
        return SessionId("s1")

    async def keep(run: Run) -> None:
        await asyncio.sleep(0)
        made[0].kept.append(run.run_id)

    async def drive(run: Run, lane: Lane, brief: str) -> RunEnded:
        return await made[0].drive(run, lane, brief)

    async with Tasks() as spawn:
        runs = Runs(Ports(clock or SystemClock(), spawn, enrol, keep, drive, lambda: settings))
        made.append(House(runs))
        runs.subscribe(made[0].events.append)
        yield made[0]
        await runs.close()


async def test_a_started_run_is_on_disk_before_it_is_answered() -> None:
    async with house() as h:
        run = await h.runs.submit(turn("a"))
        assert h.kept == ["a"]
        assert (await run.wait()).reply == "did a"


async def test_the_same_id_is_the_same_run() -> None:
    async with house() as h:
        one, two = await asyncio.gather(h.runs.submit(turn("a")), h.runs.submit(turn("a")))
        assert one is two
        await one.wait()
        assert await h.runs.submit(turn("a")) is one
        assert h.driven == ["a"]


@pytest.mark.req("CH-08")
async def test_one_run_a_session_and_sessions_side_by_side() -> None:
    async with house(lanes.Settings(mode="followup", debounce_ms=0, cap=100)) as h:
        gate = h.hold("other")
        other = await h.runs.submit(turn("other", key="agent:main:other"))
        runs = await asyncio.gather(*(h.runs.submit(turn(f"r{n}")) for n in range(50)))
        for run in runs:
            await run.wait()
        assert h.most == 1
        assert sorted(h.driven) == sorted(["other", *(f"r{n}" for n in range(50))])
        assert other.state == "running"
        gate.set()
        await other.wait()


async def test_who_has_just_begun_beside_a_session_is_known() -> None:
    clock = ManualClock()
    async with house(clock=clock) as h:
        assert not h.runs.crowded("agent:main:main")
        gate = h.hold("a")
        run = await h.runs.submit(turn("a"))
        assert not h.runs.crowded("agent:main:main")  # its own run is nobody else's
        assert h.runs.crowded("agent:main:other")
        await clock.advance(YOUNG_S)
        assert run.state == "running"
        assert not h.runs.crowded("agent:main:other")  # it waits for its model
        gate.set()
        await run.wait()


async def test_a_waiting_run_that_is_aborted_ends_without_being_run() -> None:
    async with house(lanes.Settings(mode="followup")) as h:
        gate = h.hold("a")
        first = await h.runs.submit(turn("a"))
        second = await h.runs.submit(turn("b"))
        assert await h.runs.abort("agent:main:main", "b") == ["b"]
        assert second.ended is not None
        assert second.ended.ending == "aborted"
        gate.set()
        assert (await first.wait()).ending == "ok"
        assert h.driven == ["a"]


async def test_abort_stops_what_runs_and_gives_back_when_it_has() -> None:
    async with house() as h:
        h.hold("a")
        run = await h.runs.submit(turn("a"))
        assert await h.runs.abort("agent:main:main") == ["a"]
        assert run.state == "ended"
        assert await h.runs.abort("agent:main:main") == []
        assert await h.runs.abort("agent:main:nobody") == []


async def test_interrupt_runs_the_newest() -> None:
    async with house() as h:
        h.hold("a")
        first = await h.runs.submit(turn("a"))
        second = await h.runs.submit(turn("b", queue="interrupt"))
        assert (await second.wait()).reply == "did b"
        assert first.ended is not None
        assert first.ended.ending == "aborted"


async def test_a_steered_message_that_nobody_took_is_run_next() -> None:
    async with house() as h:
        gate = h.hold("a")
        await h.runs.submit(turn("a"))
        second = await h.runs.submit(turn("b", queue="steer"))
        assert [run.run_id for run in h.runs.every()] == ["a", "b"]
        gate.set()
        assert (await second.wait()).reply == "did b"


async def test_a_dropped_message_says_why() -> None:
    async with house() as h:
        h.hold("a")
        await h.runs.submit(turn("a"))
        ended = await (await h.runs.submit(turn("b", queue="drop"))).wait()
        assert ended.ending == "error"
        assert ended.reply.startswith("The agent is busy")


async def test_what_had_no_room_is_told_in_brief() -> None:
    async with house(lanes.Settings(mode="followup", debounce_ms=0, cap=1)) as h:
        gate = h.hold("a")
        await h.runs.submit(turn("a"))
        runs = [await h.runs.submit(turn(name)) for name in "bcd"]
        gate.set()
        assert (await runs[-1].wait()).ending == "ok"
        assert h.driven == ["a", "d [2 left out]"]


async def test_what_cannot_be_run_is_refused_and_forgotten() -> None:
    async with house(refuse="There is no agent x.") as h:
        with pytest.raises(UserError, match="There is no agent x"):
            await h.runs.submit(turn("a"))
        assert h.runs.find("a") is None


async def test_a_fault_ends_the_run_in_words_and_frees_the_session(caplog: pytest.LogCaptureFixture) -> None:
    def boom(_: Run) -> None:
        raise ZeroDivisionError

    async with house() as h:
        h.acts["a"] = boom
        ended = await (await h.runs.submit(turn("a"))).wait()
        assert ended.ending == "error"
        assert ended.failure is not None
        assert ended.failure.kind is FailureKind.UNKNOWN
        assert (await (await h.runs.submit(turn("b"))).wait()).ending == "ok"
    assert "ended with a fault" in caplog.text


async def test_events_are_numbered_and_the_end_is_the_last() -> None:
    async with house() as h:
        run = await h.runs.submit(turn("a"))
        await run.wait()
        assert [event.seq for event in h.events] == list(range(1, len(h.events) + 1))
        assert isinstance(h.events[-1].body, RunEnded)


async def test_draining_waits_for_what_runs() -> None:
    async with house() as h:
        gate = h.hold("a")
        run = await h.runs.submit(turn("a"))
        assert not await h.runs.drain(0.01)
        gate.set()
        assert await h.runs.drain(5)
        assert run.state == "ended"


class SetBack(SystemClock):
    """A clock that is set back by an hour each time it is read."""

    hours = 0

    def now_ms(self) -> int:
        self.hours += 1
        return super().now_ms() - self.hours * 3_600_000


async def test_a_clock_that_is_set_back_keeps_nobody_waiting() -> None:
    settings = lanes.Settings(mode="followup", debounce_ms=50)
    async with house(settings, clock=SetBack()) as at:
        gate = at.hold("a")
        first, second = await at.runs.submit(turn("a")), await at.runs.submit(turn("b"))
        gate.set()
        async with asyncio.timeout(20):
            assert [(await run.wait()).ending for run in (first, second)] == ["ok", "ok"]
