"""Words looked for in the conversations that the turn may see."""

from __future__ import annotations

from garra.sdk.marked import marks
from garra.sdk.tool import Call, Result, ToolInfo, Update


class SessionsSearch:
    """The tool `sessions_search`."""

    info = ToolInfo(
        "sessions_search",
        "Session search",
        "Find messages in conversations by the words in them.",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 512},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        source="openclaw",
        groups=("group:sessions",),
        declared=True,
    )

    async def execute(self, call: Call, _: Update) -> Result:
        answer = await call.context.grants.ask("sessions.search", call.arguments)
        lines = [f"{hit['sessionKey']} {hit['role']}: {hit['text']}" for hit in answer["hits"]]
        return Result.of("\n".join(lines) or "Nothing was found.", answer, marks(answer))
