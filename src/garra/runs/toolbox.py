"""Tools called without a model: by a client, over HTTP. The same pipeline, as the session that is named."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from garra.core.errors import NotFound
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.keys import agent_of
from garra.core.messages import ToolCall, ToolResult
from garra.domains.tools.pipeline import Scope
from garra.runs.assemble import Assembler
from garra.sdk.tool import ToolInfo


class Toolbox:
    """The tools of every agent, behind their policy, for callers who are no model."""

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler

    def infos(self, agent_id: str) -> Sequence[ToolInfo]:
        """What an agent may call, in the order it is told of it."""
        pipeline = self._assembler.parts.pipeline
        scope = Scope(AgentId(agent_id), SessionKey(f"agent:{agent_id}:main"), "operator")
        infos = (pipeline.info(spec.name) for spec in pipeline.specs(scope))
        return [info for info in infos if info is not None]

    async def call(self, name: str, arguments: Mapping[str, Any], session_key: SessionKey) -> ToolResult:
        """Call one as a session, from outside. Raises NotFound for a tool that the session has not."""
        agent = AgentId(agent_of(session_key, self._assembler.parts.live.config.agents.default_id()))
        scope = Scope(agent, session_key, "operator", surface="http")
        pipeline = self._assembler.parts.pipeline
        if name not in pipeline.modes(scope):
            raise NotFound(f"Tool not available: {name[:80]}")
        run_id = RunId(f"tool-{uuid.uuid4()}")
        await self._assembler.prepare(agent)
        context = self._assembler.context(agent, session_key, run_id, "operator")
        return await pipeline.call(ToolCall(run_id, name, arguments), context, lambda _: None, scope)
