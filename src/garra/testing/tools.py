"""Tools that answer what they are told, for tests of whatever calls tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from garra.agent.calls import Mode, Tools, Update
from garra.core.messages import Text, ToolCall, ToolResult

Act = Callable[[ToolCall, Update], Awaitable[str]]


class FakeTools:
    """Give each tool a function; a raised `ToolError` is a failed result. `ran` names what began, `ended` what ended.

    `stopped` counts the calls that were cancelled.
    """

    def __init__(self, acts: Mapping[str, Act | str], modes: Mapping[str, Mode] | None = None) -> None:
        self._acts = acts
        self._modes = modes or {}
        self.ran: list[ToolCall] = []
        self.ended: list[ToolCall] = []
        self.stopped = 0

    @property
    def tools(self) -> Tools:
        return Tools({name: self._modes.get(name, "parallel") for name in self._acts}, self.run)

    async def run(self, call: ToolCall, update: Update) -> ToolResult:
        self.ran.append(call)
        act = self._acts[call.name]
        try:
            text, failed, kind = (act if isinstance(act, str) else await act(call, update)), False, ""
        except ToolError as error:
            text, failed, kind = str(error), True, error.kind
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        self.ended.append(call)
        details = {"kind": kind} if kind else None
        return ToolResult(call.id, call.name, (Text(text),), 0, is_error=failed, details=details)


class ToolError(Exception):
    """Raised by an act: the tool failed and says why; `kind` is that of its details, such as `denied`."""

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__(text)
        self.kind = kind


async def forever(_: ToolCall, __: Update) -> str:
    """An act that never ends by itself."""
    await asyncio.get_running_loop().create_future()
    return ""
