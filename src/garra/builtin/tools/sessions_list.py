"""The conversations that the turn may see: from a chat its own, and what it started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.sdk.tool import Call, Result, ToolInfo, Update

MOST = 50


class SessionsList:
    """The tool `sessions_list`."""

    info = ToolInfo(
        "sessions_list",
        "Sessions",
        "List conversations, newest first.",
        {
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "minimum": 1},
                "offset": {"type": "integer", "minimum": 0},
                "search": {"type": "string"},
                "agentId": {"type": "string"},
                "activeMinutes": {"type": "integer", "minimum": 1},
            },
            "additionalProperties": False,
        },
        source="openclaw",
        groups=("group:sessions",),
        declared=True,
    )

    async def execute(self, call: Call, _: Update) -> Result:
        asked = {**call.arguments, "limit": min(call.arguments.get("limit", MOST), MOST)}
        answer = await call.context.grants.ask("sessions.list", asked)
        lines = [_line(row) for row in answer["sessions"]]
        if answer.get("hasMore"):
            lines.append(f"(more: offset {answer['nextOffset']})")
        return Result.of("\n".join(lines) or "No session.", answer)


def _line(row: Mapping[str, Any]) -> str:
    busy = " (at work)" if row.get("running") else ""
    return f"{row['key']}{busy} {row.get('label', '')}".rstrip()
