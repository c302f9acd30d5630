"""Change several files with one patch: all of it is worked out first, then written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from garra.core import patch
from garra.core.errors import ToolFailed
from garra.core.patch import Add, Delete, Operation, Update
from garra.core.taint import instructs
from garra.sdk import tool
from garra.sdk.ports import Files
from garra.sdk.tool import Call, Effect, Result, ToolInfo

LARGEST = 10 << 20


class ApplyPatch:
    """The tool `apply_patch`."""

    info = ToolInfo(
        "apply_patch",
        "Apply patch",
        "Change several files. Lines of input: *** Begin Patch, then per file *** Add File: P (lines +…), "
        "*** Delete File: P, or *** Update File: P (optional *** Move to: P; hunks: @@ context, then lines "
        "starting with blank, - or +), *** End Patch.",
        {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
            "additionalProperties": False,
        },
        mode="sequential",
        effects=("remembers",),
    )

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        root = call.context.files.root
        held = any(instructs(path, root) for each in patch.parse(call.arguments["input"]) for path in _paths(each))
        return self.info.effects if held else ()

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if "patch" in arguments and "input" not in arguments:
            return {"input": arguments["patch"]}
        return arguments

    async def execute(self, call: Call, _: tool.Update) -> Result:
        operations = patch.parse(call.arguments["input"])
        plan = await asyncio.to_thread(carried_out, call.context.files, operations)
        lines = [f"{mark} {path}" for mark, path in plan.said]
        return Result.of("Done:\n" + "\n".join(lines), {"files": [{"change": m, "path": p} for m, p in plan.said]})


def _paths(operation: Operation) -> tuple[str, ...]:
    moved = operation.to if isinstance(operation, Update) else None
    return (operation.path,) if moved is None else (operation.path, moved)


@dataclass(slots=True)
class Plan:
    """What every file becomes: its text, or None for one that goes."""

    texts: dict[str, str | None] = field(default_factory=dict)
    said: list[tuple[str, str]] = field(default_factory=list)


def carried_out(files: Files, operations: tuple[Operation, ...]) -> Plan:
    """Work all of it out, then write it. Blocks. Raises ToolFailed before anything is written."""
    plan = Plan()
    for operation in operations:
        match operation:
            case Add(path, text):
                free(files, plan, path)
                plan.texts[path] = text
                plan.said.append(("A", path))
            case Delete(path):
                current(files, plan, path)
                plan.texts[path] = None
                plan.said.append(("D", path))
            case Update():
                update(files, plan, operation)
            case _:
                assert_never(operation)
    for path, after in plan.texts.items():
        if after is not None:
            files.write(path, after.encode(errors="replace"))
    for path, after in plan.texts.items():
        if after is None and files.stat(path):
            files.remove(path)
    return plan


def update(files: Files, plan: Plan, wanted: Update) -> None:
    after = patch.apply(wanted.path, current(files, plan, wanted.path), wanted.hunks)
    if wanted.to is None or wanted.to == wanted.path:
        plan.texts[wanted.path] = after
        plan.said.append(("M", wanted.path))
        return
    free(files, plan, wanted.to)
    plan.texts[wanted.path], plan.texts[wanted.to] = None, after
    plan.said.append(("R", f"{wanted.path} -> {wanted.to}"))


def current(files: Files, plan: Plan, path: str) -> str:
    """The text of `path` as the patch has left it so far."""
    if path in plan.texts:
        text = plan.texts[path]
        if text is None:
            raise ToolFailed(f"{path}: the patch has removed it before")
        return text
    try:
        return files.read(path, LARGEST).decode()
    except UnicodeDecodeError:
        raise ToolFailed(f"{path}: not UTF-8 text") from None


def free(files: Files, plan: Plan, path: str) -> None:
    there = plan.texts[path] is not None if path in plan.texts else files.stat(path) is not None
    if there:
        raise ToolFailed(f"{path}: it exists already; delete it earlier in the patch, or update it")
