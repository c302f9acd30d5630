"""Reads lines of a file of memory."""

from __future__ import annotations

from garra.sdk.marked import marks
from garra.sdk.tool import Call, Result, ToolInfo, Update


class MemoryGet:
    """The tool `memory_get`: MEMORY.md, USER.md, memory/ and the owner's extra paths, and nothing else."""

    info = ToolInfo(
        "memory_get",
        "Memory",
        "Read lines of a memory file.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "from": {"type": "integer", "minimum": 1},
                "lines": {"type": "integer", "minimum": 1},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        source="openclaw",
        groups=("group:memory",),
        declared=True,
    )

    async def execute(self, call: Call, _: Update) -> Result:
        answer = await call.context.grants.ask("memory.get", call.arguments)
        return Result.of(answer["text"] or "(nothing stands there)", answer, marks(answer))
