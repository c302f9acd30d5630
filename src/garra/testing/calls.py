"""Calling a tool as the gateway does, for a plugin's own tests: arguments checked, a folder, no programs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from garra.core import schema
from garra.core.errors import BadArguments, ToolFailed, UserError
from garra.core.ids import AgentId, RunId, SessionKey
from garra.sdk.ports import Found, Hit, Launch, Ran
from garra.sdk.tool import Call, Prepares, Result, Tool, ToolContext
from garra.testing.clock import ManualClock


def load_tool(folder: Path, module: str) -> Any:
    """What `module` (`tool:Weather`) names in a plugin's folder, without the folder on the search path."""
    name, _, attribute = module.partition(":")
    spec = importlib.util.spec_from_file_location(f"plugin_under_test_{folder.name}_{name}", folder / f"{name}.py")
    if spec is None or spec.loader is None:
        raise UserError(f"{folder} has no {name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, attribute)


async def call_tool(
    tool: Tool, arguments: Mapping[str, Any], folder: Path, update: Callable[[str], None] = lambda _: None
) -> Result:
    """One call of `tool` with its workspace in `folder`. Raises what the tool does, and BadArguments before it."""
    if isinstance(tool, Prepares):
        arguments = tool.prepare(arguments)
    mended, faults = schema.check(tool.info.parameters, dict(arguments))
    if faults:
        raise BadArguments("; ".join(faults))
    return await tool.execute(Call("call-1", mended, context(folder)), update)


def context(folder: Path) -> ToolContext:
    """A context whose files are those of `folder`, and which runs nothing."""
    key = SessionKey("agent:main:main")
    clock = ManualClock()
    return ToolContext(
        AgentId("main"), key, RunId("run-1"), "local", PlainFiles(folder), NoPrograms(), clock, NoGateway()
    )


class PlainFiles:
    """`sdk.ports.Files` of one folder, without the real door's guards: for tests of tools only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.root = str(folder)

    def _path(self, path: str) -> Path:
        found = (self._folder / path).resolve()
        if not found.is_relative_to(self._folder.resolve()):
            raise ToolFailed(f"{path} is outside the workspace")
        return found

    def read(self, path: str, limit: int) -> bytes:
        try:
            data = self._path(path).read_bytes()
        except OSError as error:
            raise ToolFailed(f"{path}: {error.strerror}") from None
        if len(data) > limit:
            raise ToolFailed(f"{path} is larger than {limit} bytes")
        return data

    def read_range(self, path: str, start: int, size: int) -> tuple[bytes, int]:
        data = self.read(path, 1 << 30)
        return data[start : start + size], len(data)

    def write(self, path: str, data: bytes) -> None:
        file = self._path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def remove(self, path: str) -> None:
        self._path(path).unlink()

    def rename(self, path: str, to: str) -> None:
        self._path(path).rename(self._path(to))

    def entries(self, path: str) -> list[Found]:
        return [self._found(found) for found in sorted(self._path(path).iterdir())]

    def walk(self, path: str, limit: int, skip: Collection[str] = ()) -> list[Found]:
        files = (found for found in sorted(self._path(path).rglob("*")) if not set(found.parts) & set(skip))
        return [self._found(found) for found, _ in zip(files, range(limit), strict=False)]

    def stat(self, path: str) -> Found | None:
        found = self._path(path)
        return self._found(found) if found.exists() else None

    def _found(self, path: Path) -> Found:
        facts = path.stat()
        kind: Literal["folder", "file"] = "folder" if path.is_dir() else "file"
        return Found(str(path.relative_to(self._folder)), kind, facts.st_size, facts.st_mtime_ns // 1_000_000)


class NoPrograms:
    """`sdk.ports.Exec` that refuses."""

    def _refuse(self) -> NoReturn:
        raise ToolFailed("no programs in this test")

    async def run(self, launch: Launch, update: Callable[[str], None]) -> Ran:
        self._refuse()

    def running(self) -> Sequence[Ran]:
        return ()

    async def poll(self, session: str, wait_ms: int = 0) -> Ran:
        self._refuse()

    def log(self, session: str, offset: int, limit: int) -> str:
        self._refuse()

    async def send(self, session: str, data: bytes) -> Ran:
        self._refuse()

    async def kill(self, session: str) -> Ran:
        self._refuse()

    async def settles(self, what: Launch | str) -> bool:
        return True

    async def match(self, pattern: str, texts: Sequence[tuple[str, bytes]], limit: int) -> list[Hit]:
        self._refuse()


class NoGateway:
    """`sdk.ports.Grants` that refuses."""

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        raise UserError(f"{method}: no gateway in this test")
