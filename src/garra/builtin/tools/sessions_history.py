"""What was said in a conversation that the turn may see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.sdk.marked import marks
from garra.sdk.tool import Call, Result, ToolInfo, Update


class SessionsHistory:
    """The tool `sessions_history`."""

    info = ToolInfo(
        "sessions_history",
        "Session history",
        "Read what was said in a conversation, the newest part.",
        {
            "type": "object",
            "properties": {
                "sessionKey": {"type": "string", "description": "default: this one"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200},
                "offset": {"type": "integer", "minimum": 0, "description": "skip so many of the newest"},
                "includeTools": {"type": "boolean"},
            },
            "additionalProperties": False,
        },
        source="openclaw",
        groups=("group:sessions",),
        declared=True,
    )

    async def execute(self, call: Call, _: Update) -> Result:
        answer = await call.context.grants.ask("sessions.history", call.arguments)
        lines = [_line(row) for row in answer["messages"]]
        if answer.get("hasMore"):
            lines.insert(0, f"(older: offset {answer['nextOffset']})")
        return Result.of("\n".join(lines) or "Nothing was said there.", answer, marks(answer))


def _line(row: Mapping[str, Any]) -> str:
    calls = f" [calls {', '.join(row['calls'])}]" if row.get("calls") else ""
    return f"{row['role']}: {row['text']}{calls}"
