"""Change parts of a text file, all or none."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from garra.core import edits
from garra.core.edits import Edit
from garra.core.errors import ToolFailed
from garra.core.taint import instructs
from garra.sdk.ports import Files
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update

LARGEST = 10 << 20
SHOWN = 200
OF_OLD = {"file_path": "path", "old_string": "oldText", "new_string": "newText", "replace_all": "replaceAll"}


class EditFile:
    """The tool `edit`."""

    info = ToolInfo(
        "edit",
        "Edit",
        "Replace exact text in a file. Each oldText must stand there once, blanks included.",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "edits": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "properties": {
                            "oldText": {"type": "string"},
                            "newText": {"type": "string"},
                            "replaceAll": {"type": "boolean"},
                        },
                        "required": ["oldText", "newText"],
                        "additionalProperties": False,
                    },
                },
            },
            "required": ["path", "edits"],
            "additionalProperties": False,
        },
        mode="sequential",
        effects=("remembers",),
    )

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        return self.info.effects if instructs(call.arguments["path"], call.context.files.root) else ()

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        named = {OF_OLD.get(name, name): value for name, value in arguments.items()}
        if "edits" not in named and {"oldText", "newText"} <= named.keys():
            edit = {name: named.pop(name) for name in ("oldText", "newText", "replaceAll") if name in named}
            return {**named, "edits": [edit]}
        if isinstance(named.get("edits"), list):
            named["edits"] = [
                {OF_OLD.get(k, k): v for k, v in one.items()} if isinstance(one, Mapping) else one
                for one in named["edits"]
            ]
        return named

    async def execute(self, call: Call, _: Update) -> Result:
        path = call.arguments["path"]
        wanted = [Edit(one["oldText"], one["newText"], one.get("replaceAll", False)) for one in call.arguments["edits"]]
        diff = await asyncio.to_thread(change, call.context.files, path, wanted)
        many = f"{len(wanted)} edits" if len(wanted) > 1 else "1 edit"
        return Result.of(f"Made {many} in {path}", {"path": path, "diff": diff})


def change(files: Files, path: str, wanted: list[Edit]) -> str:
    """Make the edits; gives back the difference. Blocks."""
    import difflib  # noqa: PLC0415 - seldom needed, and large

    try:
        before = files.read(path, LARGEST).decode()
    except UnicodeDecodeError:
        raise ToolFailed(f"{path}: not UTF-8 text; change it with exec") from None
    mark = "\ufeff" if before.startswith("\ufeff") else ""
    after = mark + edits.apply(path, before.removeprefix(mark), wanted)
    files.write(path, after.encode())
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    return "\n".join(itertools.islice(lines, SHOWN))
