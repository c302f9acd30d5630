"""Write a whole file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from garra.core.taint import instructs
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update


class Write:
    """The tool `write`."""

    info = ToolInfo(
        "write",
        "Write",
        "Write a whole file, new or replaced; folders are made. To change a part use edit.",
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
            "additionalProperties": False,
        },
        mode="sequential",
        effects=("remembers",),
    )

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        return self.info.effects if instructs(call.arguments["path"], call.context.files.root) else ()

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if "file_path" in arguments and "path" not in arguments:
            return {"path": arguments["file_path"], **{k: v for k, v in arguments.items() if k != "file_path"}}
        return arguments

    async def execute(self, call: Call, _: Update) -> Result:
        path, data = call.arguments["path"], call.arguments["content"].encode(errors="replace")
        await asyncio.to_thread(call.context.files.write, path, data)
        return Result.of(f"Wrote {len(data)} bytes to {path}", {"path": path, "size": len(data)})
