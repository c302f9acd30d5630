"""Read a file: text in parts, pictures whole."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any, Protocol

from garra.core import outside
from garra.core.errors import ToolFailed
from garra.core.messages import Image, Text
from garra.core.taint import Mark
from garra.core.value import frozen
from garra.sdk.tool import Call, Result, ToolInfo, Update

HANDLE = "media://"
LINES, BYTES, CHUNK = 2_000, 40_000, 1 << 20
MAX_IMAGE = 5 << 20
MAGIC = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


class Ranged(Protocol):
    """What is read piece by piece."""

    def read_range(self, path: str, start: int, size: int) -> tuple[bytes, int]: ...


@frozen
class Window:
    """Lines `first` to `last` of a file; `more` when others follow."""

    text: str
    first: int
    last: int
    more: bool


class Read:
    """The tool `read`."""

    info = ToolInfo(
        "read",
        "Read",
        "Read a file: text (at most 2000 lines; go on with offset) or a picture.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "offset": {"type": "integer", "minimum": 1, "description": "first line"},
                "limit": {"type": "integer", "minimum": 1, "description": "lines"},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    )

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if "file_path" in arguments and "path" not in arguments:
            return {"path": arguments["file_path"], **{k: v for k, v in arguments.items() if k != "file_path"}}
        return arguments

    async def execute(self, call: Call, _: Update) -> Result:
        path = call.arguments["path"]
        if path.startswith(HANDLE):
            return await self._named(call, path)
        files = call.context.files
        head, size = await asyncio.to_thread(files.read_range, path, 0, 8_192)
        kind = media_type(head)
        if kind:
            if size > MAX_IMAGE:
                raise ToolFailed(f"{path}: a picture of {size} bytes; at most {MAX_IMAGE} can be shown")
            data = base64.b64encode(await asyncio.to_thread(files.read, path, MAX_IMAGE)).decode()
            return Result((Text(f"{path} ({kind}, {size} bytes)"), Image(kind, data)), {"path": path, "size": size})
        if b"\0" in head:
            raise ToolFailed(f"{path}: not text ({size} bytes); look at it with exec")
        first = call.arguments.get("offset", 1)
        window = await asyncio.to_thread(lines, files, path, first, call.arguments.get("limit", LINES))
        details = {"path": path, "size": size, "lines": [window.first, window.last], "more": window.more}
        return Result.of(told(path, window, size), details)

    async def _named(self, call: Call, handle: str) -> Result:
        """What came with a message, or was taken from outside: text and pictures, marked."""
        held = await call.context.grants.ask("media.read", {"handle": handle, "limit": MAX_IMAGE})
        data, mark = held["data"], Mark("file", handle)
        if kind := media_type(data[:16]):
            shown = Image(kind, base64.b64encode(data).decode())
            return Result((Text(f"{handle} ({kind}, {len(data)} bytes)"), shown), {"path": handle}, (mark,))
        if b"\0" in data[:8_192] or data.startswith(b"%PDF-"):
            raise ToolFailed(f"{handle}: not text ({len(data)} bytes); a PDF is read with the tool pdf")
        first = call.arguments.get("offset", 1)
        window = await asyncio.to_thread(lines, _Held(data), handle, first, call.arguments.get("limit", LINES))
        details = {"path": handle, "size": len(data), "lines": [window.first, window.last], "more": window.more}
        more = f"\n[more lines follow: offset={window.last + 1}]" if window.more else ""
        return Result.of(outside.wrap(window.text, mark) + more, details, (mark,))


class _Held:
    """A file that is in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_range(self, path: str, start: int, size: int) -> tuple[bytes, int]:
        """As `sdk.ports.Files`."""
        return self._data[start : start + size], len(self._data)


def media_type(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), None)


def lines(files: Ranged, path: str, first: int, count: int) -> Window:
    """Read through the file piece by piece: memory does not grow with it. Blocks."""
    at, number, taken, rest = 0, 1, bytearray(), b""
    last = first - 1
    while True:
        data, size = files.read_range(path, at, CHUNK)
        at += len(data)
        ended = not data or at >= size
        pieces = (rest + data).splitlines(keepends=True)
        rest = b"" if ended or not pieces or pieces[-1].endswith(b"\n") else pieces.pop()
        for piece in pieces:
            if number >= first:
                if last - first + 1 >= count or (taken and len(taken) + len(piece) > BYTES):
                    return Window(text(taken), first, last, more=True)
                taken += piece[:BYTES]
                last = number
            number += 1
        if ended:
            if first > 1 and last < first:
                raise ToolFailed(f"{path}: has {number - 1} lines; offset {first} is past its end")
            return Window(text(taken), first, last, more=False)


def text(data: bytes | bytearray) -> str:
    return data.decode("utf-8-sig", errors="replace")


def told(path: str, window: Window, size: int) -> str:
    if not size:
        return f"({path} is empty)"
    if not window.more:
        return window.text
    return f"{window.text}\n[Lines {window.first} to {window.last}; more follow: offset={window.last + 1}]"
