"""Files by name."""

from __future__ import annotations

import asyncio

from garra.core import glob
from garra.sdk.tool import Call, Result, ToolInfo, Update

MOST, WALKED = 500, 50_000
SKIP = frozenset({".git", "node_modules", "__pycache__", ".venv"})


class Find:
    """The tool `find`."""

    info = ToolInfo(
        "find",
        "Find",
        "Find files by glob, such as *.py or src/**/*.ts.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string"},
                "path": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        groups=("group:fs",),
    )

    async def execute(self, call: Call, _: Update) -> Result:
        pattern, path = call.arguments["pattern"], call.arguments.get("path", "")
        limit = min(call.arguments.get("limit", MOST), MOST)
        found = await asyncio.to_thread(self._found, call, pattern, path)
        lines = found[:limit] or ["No file fits."]
        if len(found) > limit:
            lines.append(f"[{len(found) - limit} more; narrow the pattern]")
        return Result.of("\n".join(lines), {"files": len(found)})

    def _found(self, call: Call, pattern: str, path: str) -> list[str]:
        files = call.context.files
        start = files.stat(path)
        above = f"{start.path}/" if start and start.path else ""
        walked = files.walk(path, WALKED, SKIP)
        fits = glob.compiled(pattern)
        return [entry.path for entry in walked if fits(entry.path.removeprefix(above))]
