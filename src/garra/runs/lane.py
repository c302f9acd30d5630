"""Drives one session's lane: `core.lanes` decides, this carries it out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, assert_never

from garra.core import lanes
from garra.core.ids import RunId
from garra.core.lanes import Item, Reason
from garra.core.taint import Mark
from garra.runs.run import Run
from garra.sdk.ports import Clock


class Driver(Protocol):
    """What a lane asks of its owner."""

    def begin(self, lane: Lane, runs: Sequence[Run], brief: str) -> None:
        """Start one run for `runs`; the first is its face. `brief` tells of messages that were dropped."""
        ...

    def drop(self, run: Run, reason: Reason) -> None:
        """End a run that will not be run."""
        ...


class Lane:
    """One session's runs, one at a time. All calls are made on the event loop's thread."""

    def __init__(self, settings: lanes.Settings, driver: Driver, clock: Clock) -> None:
        self._state = lanes.State(settings)
        self._driver, self._clock = driver, clock
        self._runs: dict[str, Run] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._left_out: tuple[Mark, ...] = ()
        self.head: Run | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self.head is None and not self._runs

    @property
    def waiting(self) -> tuple[Run, ...]:
        """What was accepted and has not begun, in order."""
        return tuple(
            self._runs[item.id] for item in (*self._state.steered, *self._state.queue) if item.id in self._runs
        )

    def configure(self, settings: lanes.Settings) -> None:
        if settings != self._state.settings:
            self._step(lanes.Configured(settings))

    def arrive(self, run: Run) -> None:
        """A message came: it begins, is handed to the running run, waits, or is dropped."""
        turn = run.turn
        self._runs[turn.run_id] = run
        route = f"{turn.origin} {turn.model or ''} {turn.thinking or ''} {turn.route} {turn.extra_system}"
        self._step(lanes.Arrived(Item(turn.run_id, self._now_ms(), turn.text, route, turn.queue)))

    def open(self, *, yes: bool) -> None:
        """The running run takes messages between its steps, or no longer."""
        self._step(lanes.Opened(yes))

    def consumed(self, runs: Sequence[Run]) -> None:
        """The running run has put these into its transcript."""
        self._step(lanes.Consumed(frozenset(run.run_id for run in runs)))
        for run in runs:
            self._runs.pop(run.run_id, None)

    def ended(self) -> None:
        """The running run has ended; what it had not taken waits first."""
        self.head = None
        self._step(lanes.Ended(self._now_ms()))

    def cancel(self, ids: Sequence[RunId] | None) -> None:
        """Stop these, waiting or running; `None` stops all."""
        self._step(lanes.Cancelled(None if ids is None else frozenset(ids)))

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    def _now_ms(self) -> int:
        """A lane lives in memory only, so it goes by the clock that nobody sets: waiting must not last for ever."""
        return round(self._clock.monotonic() * 1000)

    def _step(self, event: lanes.Event) -> None:
        self._state, effects = lanes.step(self._state, event)
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: lanes.Effect) -> None:
        match effect:
            case lanes.Start(items, summary):
                runs = [self._runs.pop(item.id) for item in items]
                runs[0].left_out, self._left_out = self._left_out, ()
                self.head = runs[0]
                self._driver.begin(self, runs, _brief(summary))
            case lanes.Steer(item):
                assert self.head is not None
                self.head.steer.append(self._runs[item.id])
            case lanes.Interrupt():
                assert self.head is not None
                self.head.cancel.set("interrupt")
            case lanes.Dropped(item, reason):
                self._drop(item, reason)
            case lanes.Wake(at_ms):
                self._wake_at(at_ms)
            case lanes.Queued():
                pass
            case _:
                assert_never(effect)

    def _drop(self, item: Item, reason: Reason) -> None:
        run = self._runs.pop(item.id, None)
        if run is None:
            return
        if self.head is not None and run in self.head.steer:
            self.head.steer.remove(run)
        if reason == "summarized":
            self._left_out = (*self._left_out, *run.turn.marks)
        self._driver.drop(run, reason)

    def _wake_at(self, at_ms: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        wait_s = max(0, at_ms - self._now_ms()) / 1000
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_later(wait_s, lambda: self._step(lanes.Woke(self._now_ms())))


def _brief(items: Sequence[Item]) -> str:
    """What is told of messages that there was no room for."""
    if not items:
        return ""
    lines = (f"- {_line(item.text)}" for item in items)
    return "[Messages that came meanwhile and were left out for lack of room, in brief:]\n" + "\n".join(lines)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:159] + "…"
