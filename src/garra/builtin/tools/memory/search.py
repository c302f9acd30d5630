"""Looks for what the agent remembers, by words and by meaning."""

from __future__ import annotations

from garra.sdk.marked import marks
from garra.sdk.tool import Call, Result, ToolInfo, Update


class MemorySearch:
    """The tool `memory_search`. The gateway decides whose memories the turn may find."""

    info = ToolInfo(
        "memory_search",
        "Memory search",
        "Search memory files and past chats.",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 2000},
                "maxResults": {"type": "integer", "minimum": 1, "maximum": 50},
                "minScore": {"type": "number", "minimum": 0, "maximum": 1},
                "corpus": {"enum": ["memory", "sessions", "all"]},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        source="openclaw",
        groups=("group:memory",),
        declared=True,
    )

    async def execute(self, call: Call, _: Update) -> Result:
        answer = await call.context.grants.ask("memory.recall", call.arguments)
        told = [f"{hit['citation']} ({hit['score']:.2f})\n{hit['snippet']}" for hit in answer["results"]]
        if answer.get("warning"):
            told.append(f"({answer['warning']})")
        return Result.of("\n\n".join(told) or "Nothing was found.", answer, marks(answer))
