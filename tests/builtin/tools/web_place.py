"""The web as its tools see it in tests: the real door, settings as given, servers on loopback."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from garra.builtin.tools.web.fetch import WebFetch
from garra.builtin.tools.web.search import WebSearch
from garra.config.sections import Config
from garra.core.messages import ToolCall, ToolResult
from garra.core.secret import Bound
from garra.domains.tools.pipeline import Pipeline
from garra.domains.web import settings
from garra.domains.web.door import Web
from garra.io.clock import SystemClock
from garra.io.process.bounded import Bounded
from garra.io.process.door import Programs
from garra.sdk.ports import DIRECT
from garra.sdk.searcher import Searcher
from tests.builtin.tools.place import context


class WebPlace:
    """Calls the tools through the pipeline; `config` may be changed between two calls."""

    def __init__(self, root: Path, config: dict[str, Any], env: Mapping[str, str], known: tuple[Searcher, ...]) -> None:
        self.config = Config.model_validate(config)
        self.programs = Programs()
        self.env = dict(env)
        self.bound: tuple[Bound, ...] = ()
        self.web = Web(lambda: self.config, lambda: self.env, known, lambda: DIRECT, bound=lambda: self.bound)
        self.bounded = bounded = Bounded(self.programs, {"PYTHONPATH": ":".join(sys.path)}, str(root))
        clock = SystemClock()
        self.tools = (WebFetch(self.web, bounded, clock), WebSearch(self.web, bounded, clock))
        self.pipeline = Pipeline(lambda: self.tools, lambda _: self.web.switches(), clock)
        self.context = context(root)

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        return await self.pipeline.call(ToolCall("c", name, arguments), self.context, lambda _: None)

    async def said(self, name: str, **arguments: Any) -> str:
        result = await self.call(name, **arguments)
        assert not result.is_error, result.text
        return result.text

    async def refused(self, name: str, **arguments: Any) -> str:
        result = await self.call(name, **arguments)
        assert result.is_error, result.text
        return result.text


@asynccontextmanager
async def web_place(
    root: Path, config: dict[str, Any] | None = None, env: Mapping[str, str] | None = None
) -> AsyncIterator[WebPlace]:
    place = WebPlace(root, config or {}, env or {}, await asyncio.to_thread(settings.shipped))
    try:
        yield place
    finally:
        await place.web.close()
        await place.programs.close()


def listing(*hosts: str, **fetch: Any) -> dict[str, Any]:
    return {"tools": {"web": {"fetch": {"ssrfPolicy": {"allowedHostnames": list(hosts)}, **fetch}}}}
