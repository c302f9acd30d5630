"""The agents that this one may give work to."""

from __future__ import annotations

from garra.sdk.tool import Call, Result, ToolInfo, Update


class AgentsList:
    """The tool `agents_list`."""

    info = ToolInfo(
        "agents_list",
        "Agents",
        "List the agents you may give work to (sessions_spawn).",
        {"type": "object", "properties": {}, "additionalProperties": False},
        source="openclaw",
        groups=("group:agents",),
        declared=True,
    )

    async def execute(self, call: Call, _: Update) -> Result:
        answer = await call.context.grants.ask("agents.list", {})
        lines = [f"{row['id']} {row.get('name', '')}".rstrip() for row in answer["agents"]]
        return Result.of("\n".join(lines), answer)
