"""Lines by regular expression."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from garra.core import glob
from garra.core.errors import ToolFailed
from garra.sdk.ports import Files
from garra.sdk.tool import Call, Result, ToolInfo, Update

MOST, WALKED = 200, 20_000
LARGEST, ALTOGETHER = 1 << 20, 32 << 20
SKIP = frozenset({".git", "node_modules", "__pycache__", ".venv"})


class Grep:
    """The tool `grep`."""

    info = ToolInfo(
        "grep",
        "Search",
        "Search files for a regular expression (Python's). Gives path:line: text.",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string"},
                "path": {"type": "string", "description": "file or folder"},
                "glob": {"type": "string"},
                "ignoreCase": {"type": "boolean"},
                "literal": {"type": "boolean"},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        groups=("group:fs",),
    )

    async def execute(self, call: Call, _: Update) -> Result:
        asked = call.arguments
        limit = min(asked.get("limit", MOST), MOST)
        texts, left_out = await asyncio.to_thread(gathered, call.context.files, asked)
        hits = await call.context.exec.match(expression(asked), texts, limit) if texts else []
        lines = [f"{hit.path}:{hit.line}: {hit.text}" for hit in hits] or ["No line matches."]
        if len(hits) == limit:
            lines.append(f"[stopped at {limit}; narrow the search]")
        if left_out:
            lines.append(f"[{left_out} files not searched: too large, or too many]")
        return Result.of("\n".join(lines), {"matches": len(hits), "searched": len(texts), "skipped": left_out})


def expression(asked: Mapping[str, Any]) -> str:
    pattern: str = asked["pattern"]
    if asked.get("literal"):
        pattern = re.escape(pattern)
    return f"(?i){pattern}" if asked.get("ignoreCase") else pattern


def gathered(files: Files, asked: Mapping[str, Any]) -> tuple[list[tuple[str, bytes]], int]:
    """The texts to search, and how many were left out. Blocks."""
    path = asked.get("path", "")
    wanted = glob.compiled(asked.get("glob", "*"))
    start = files.stat(path)
    if start is None:
        raise ToolFailed(f"{path}: there is no such file or folder")
    found = [start] if start.kind == "file" else files.walk(path, WALKED, SKIP)
    texts: list[tuple[str, bytes]] = []
    room, left_out = ALTOGETHER, 0
    for entry in found:
        if not wanted(entry.path):
            continue
        if entry.size > min(LARGEST, room):
            left_out += 1
            continue
        try:
            data = files.read(entry.path, LARGEST)
        except ToolFailed:
            left_out += 1
            continue
        if b"\0" not in data[:8_192]:
            texts.append((entry.path, data))
            room -= len(data)
    return texts, left_out
