"""What stands in a folder."""

from __future__ import annotations

import asyncio

from garra.sdk.ports import Found
from garra.sdk.tool import Call, Result, ToolInfo, Update

MOST = 500


class Ls:
    """The tool `ls`."""

    info = ToolInfo(
        "ls",
        "List",
        "List a folder (default: the workspace). Folders end with /.",
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
            "additionalProperties": False,
        },
        groups=("group:fs",),
    )

    async def execute(self, call: Call, _: Update) -> Result:
        path = call.arguments.get("path", "")
        limit = min(call.arguments.get("limit", MOST), MOST)
        entries = await asyncio.to_thread(call.context.files.entries, path)
        lines = [line(entry) for entry in entries[:limit]] or ["(empty)"]
        if len(entries) > limit:
            lines.append(f"[{len(entries) - limit} more]")
        return Result.of("\n".join(lines), {"path": path, "entries": len(entries)})


def line(entry: Found) -> str:
    name = entry.path.rpartition("/")[2]
    marks = {"folder": "/", "link": "@", "file": f"  {entry.size}", "other": "?"}
    return name + marks[entry.kind]
