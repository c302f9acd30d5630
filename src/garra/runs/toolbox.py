"""Tools called without a model: by a client, over HTTP. The same pipeline, as the session that is named."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from garra.core.errors import NotFound
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.keys import agent_of
from garra.core.messages import ToolCall, ToolResult
from garra.core.policy import Verdict
from garra.domains.sessions.session import Session
from garra.domains.tools.pipeline import Scope
from garra.runs import explain
from garra.runs.assemble import Assembler
from garra.runs.explain import Asked, Paired
from garra.sdk.tool import ToolInfo


class Toolbox:
    """The tools of every agent, behind their policy, for callers who are no model."""

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler

    def infos(self, agent_id: str) -> Sequence[ToolInfo]:
        """What an agent may call, in the order it is told of it."""
        pipeline = self._assembler.parts.pipeline
        scope = Scope(AgentId(agent_id), SessionKey(f"agent:{agent_id}:main"), "operator")
        return [row.info for row in pipeline.rows(scope) if row.decision.verdict is not Verdict.DENY]

    def explain(self, name: str, asked: Asked, session: Session | None, paired: Paired) -> dict[str, Any]:
        """Why a session has a tool or has it not, as JSON."""
        config = self._assembler.parts.live.config
        scope = explain.scope_of(asked, session, config, paired)
        return explain.explained(name, self._assembler.parts.pipeline, config, scope)

    def policy(self, asked: Asked, session: Session | None, paired: Paired) -> dict[str, Any]:
        """Every tool with what became of it in a session, as JSON."""
        config = self._assembler.parts.live.config
        return explain.listed(self._assembler.parts.pipeline, config, explain.scope_of(asked, session, config, paired))

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
