"""Where the tools' tests call them: a workspace, real commands, and a gateway that answers what it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from garra.core.execplan import Settings
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.messages import ToolCall, ToolResult
from garra.domains.exec.planning import Host
from garra.domains.exec.supervisor import Supervisor
from garra.domains.tools.pipeline import Pipeline
from garra.io.clock import SystemClock
from garra.io.files.root import Root
from garra.io.process.door import Programs
from garra.io.tasks import Tasks
from garra.sdk.ports import Exec, Hit, Launch, Ran
from garra.sdk.tool import Tool, ToolContext

KEY = SessionKey("agent:main:main")


class NoExec:
    """Commands for tools that run none."""

    async def run(self, launch: Launch, update: Callable[[str], None]) -> Ran:
        raise AssertionError(launch, update)

    def running(self) -> Sequence[Ran]:
        return []

    async def poll(self, session: str, wait_ms: int = 0) -> Ran:
        raise AssertionError(session, wait_ms)

    def log(self, session: str, offset: int, limit: int) -> str:
        raise AssertionError(session, offset, limit)

    async def send(self, session: str, data: bytes) -> Ran:
        raise AssertionError(session, data)

    async def kill(self, session: str) -> Ran:
        raise AssertionError(session)

    async def settles(self, what: Launch | str) -> bool:
        return True

    async def match(self, pattern: str, texts: Sequence[tuple[str, bytes]], limit: int) -> list[Hit]:
        raise AssertionError(pattern, texts, limit)


class Granted:
    """A gateway that remembers what it is asked."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self.asked.append((method, params))
        return self.answer


def context(root: Path = Path("/nowhere"), programs: Exec | None = None, grants: Granted | None = None) -> ToolContext:
    return ToolContext(
        AgentId("main"),
        KEY,
        RunId("run-1"),
        "operator",
        Root(root),
        programs or NoExec(),
        SystemClock(),
        grants or Granted(),
    )


class Place:
    """A workspace and the tools in it."""

    def __init__(self, root: Path, programs: Exec, grants: Granted, tools: Sequence[Tool]) -> None:
        self.root, self.grants = root, grants
        self.context = context(root, programs, grants)
        self.pipeline = Pipeline(lambda: tools, lambda _: (), SystemClock())
        self.updates: list[str] = []

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        return await self.pipeline.call(ToolCall("c", name, arguments), self.context, self.updates.append)

    async def said(self, name: str, **arguments: Any) -> str:
        result = await self.call(name, **arguments)
        assert not result.is_error, result.text
        return result.text

    async def refused(self, name: str, **arguments: Any) -> str:
        result = await self.call(name, **arguments)
        assert result.is_error
        return result.text


@asynccontextmanager
async def opened(root: Path, tools: Sequence[Tool], settings: Settings) -> AsyncIterator[Place]:
    programs = Programs()
    async with Tasks() as tasks:
        numbers = iter(range(1_000))
        supervisor = Supervisor(
            programs, [], SystemClock(), tasks, new_id=lambda: f"job-{next(numbers)}", host=Host(str(root))
        )
        yield Place(root, supervisor.exec_for(KEY, str(root), "operator", settings), Granted(), tools)
        await supervisor.close()
        await programs.close()
