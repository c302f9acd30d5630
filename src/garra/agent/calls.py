"""The tools a model asked for in one answer: side by side, or in order when one of them asks for it.

Whatever happens, each call gets exactly one result, and the results come in the order of the calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from garra.agent.cancel import Cancel
from garra.core.events import AgentEvent, ToolEnded, ToolStarted, ToolUpdated
from garra.core.messages import Text, ToolCall, ToolResult
from garra.core.value import frozen
from garra.sdk.ports import Clock, Spawn, Task

Mode = Literal["parallel", "sequential"]
Update = Callable[[str], None]
Emit = Callable[[AgentEvent], None]

GRACE_S = 1.5
"""How long a cancelled tool may take to clean up before the run goes on without it."""


@frozen
class Tools:
    """What a run may call: `modes` names each tool, `run` carries a call out, `hidden` are kept out of progress lines.

    `run` never raises but for cancellation; a tool's failure is a result with `is_error`.
    """

    modes: Mapping[str, Mode] = field(default_factory=dict)
    run: Callable[[ToolCall, Update], Awaitable[ToolResult]] | None = None
    hidden: frozenset[str] = frozenset()


def failed(call: ToolCall, now_ms: int, text: str, details: Any = None) -> ToolResult:
    """A result of ours, for a call that did not run to its end."""
    return ToolResult(call.id, call.name, (Text(text),), now_ms, is_error=True, details=details)


@frozen
class Batch:
    """The calls of one answer, and what they need to run. `skip` says, before a call in order starts, why it should
    not (empty: it should).
    """

    calls: Sequence[ToolCall]
    tools: Tools
    cancel: Cancel
    emit: Emit
    clock: Clock
    spawn: Spawn
    skip: Callable[[], str] = lambda: ""

    async def settle(self, keep: Callable[[ToolResult], Awaitable[None]]) -> tuple[ToolResult, ...]:
        """Run them. `keep` is awaited with each result, in the order of the calls, as soon as it and those before it
        have ended; when it raises, the calls still running are cancelled.
        """
        ordered = any(self.tools.modes.get(call.name) == "sequential" for call in self.calls)
        runs: list[_Run] = [] if ordered else [self._run(call) for call in self.calls]
        results: list[ToolResult] = []
        try:
            for index, call in enumerate(self.calls):
                if ordered:
                    runs.append(self._run(call))
                results.append(await runs[index].result())
                await keep(results[-1])
        finally:
            for run in runs:
                run.drop()
        return tuple(results)

    def _run(self, call: ToolCall) -> _Run:
        run = _Run(call, self)
        run.start(self._refusal(call))
        return run

    def _refusal(self, call: ToolCall) -> str:
        if self.cancel.is_set:
            return "Not run: the run was stopped."
        if self.tools.run is None or call.name not in self.tools.modes:
            names = ", ".join(self.tools.modes) or "none"
            return f"There is no tool {call.name}. Tools: {names}."
        return self.skip()


class _Run:
    """One call on its way."""

    def __init__(self, call: ToolCall, batch: Batch) -> None:
        self._call, self._batch = call, batch
        self._hidden = call.name in batch.tools.hidden
        self._began = batch.clock.monotonic()
        self._result: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        self._task: Task | None = None
        self._working = False
        self._detach: Callable[[], None] = lambda: None

    def start(self, refusal: str) -> None:
        self._batch.emit(ToolStarted(self._call, self._hidden))
        if refusal:
            self._end(self._failed(refusal))
            return
        self._task = self._batch.spawn(self._work(), f"tool {self._call.name}")
        self._detach = self._batch.cancel.attach(self._stop)

    async def result(self) -> ToolResult:
        return await asyncio.shield(self._result)

    def drop(self) -> None:
        """Nobody waits for it any more."""
        if not self._result.done():
            self._result.cancel()
            self._detach()
            if self._task:
                self._task.cancel()

    async def _work(self) -> None:
        self._working = True
        try:
            assert self._batch.tools.run is not None
            self._end(await self._batch.tools.run(self._call, self._update))
        finally:
            stopped = self._batch.cancel.is_set
            self._end(self._failed("Stopped before it ended." if stopped else "The tool broke off; see the log."))

    def _stop(self) -> None:
        if self._task is None or self._result.done():
            return
        self._task.cancel()
        if self._working:
            asyncio.get_running_loop().call_later(GRACE_S, self._end, self._failed("Stopped; it did not end in time."))
        else:
            self._end(self._failed("Not run: the run was stopped."))

    def _update(self, partial: str) -> None:
        if not self._result.done():
            self._batch.emit(ToolUpdated(self._call, partial, self._hidden))

    def _end(self, result: ToolResult) -> None:
        if self._result.done():
            return
        self._detach()
        self._result.set_result(result)
        took = round((self._batch.clock.monotonic() - self._began) * 1000)
        self._batch.emit(ToolEnded(self._call, result, took, self._hidden))

    def _failed(self, text: str) -> ToolResult:
        details = {"aborted": True} if self._batch.cancel.is_set else None
        return failed(self._call, self._batch.clock.now_ms(), text, details)
