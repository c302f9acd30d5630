"""A tool whose result is long."""

from __future__ import annotations

from garra.sdk.tool import Call, Result, ToolInfo, Update

LINE = "The quick brown fox jumps over the lazy dog while the measurement runs.\n"


class Bulky:
    """`bytes` of text."""

    info = ToolInfo(
        "bulky",
        "Bulky",
        "Gives a long text.",
        {
            "type": "object",
            "properties": {"bytes": {"type": "integer"}},
            "required": ["bytes"],
            "additionalProperties": False,
        },
        source="plugin",
    )

    async def execute(self, call: Call, update: Update) -> Result:
        size = int(call.arguments["bytes"])
        return Result.of((LINE * (size // len(LINE) + 1))[:size])
