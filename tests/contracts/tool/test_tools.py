"""What every built-in tool keeps to: its face, its schema, and what it does with paths that lead out."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.tools.apply_patch import ApplyPatch
from garra.builtin.tools.edit import EditFile
from garra.builtin.tools.exec import ExecTool
from garra.builtin.tools.find import Find
from garra.builtin.tools.grep import Grep
from garra.builtin.tools.ls import Ls
from garra.builtin.tools.process import Process
from garra.builtin.tools.read import Read
from garra.builtin.tools.sessions_list import SessionsList
from garra.builtin.tools.write import Write
from garra.core.execplan import Settings
from garra.core.execrules import Policy
from garra.core.schema import clean, faults
from garra.sdk.tool import Tool
from tests.builtin.tools.place import Place, opened

TOOLS: tuple[Tool, ...] = (
    Read(), Write(), EditFile(), ApplyPatch(), Ls(), Find(), Grep(), ExecTool(), Process(), SessionsList(),
)  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.info.name)
def test_a_face_that_fits_every_vendor(tool: Tool) -> None:
    info = tool.info
    assert re.fullmatch(r"[a-z][a-z_]{0,63}", info.name)
    assert info.label
    assert 10 < len(info.description) <= 300
    assert info.parameters["type"] == "object"
    assert info.parameters["additionalProperties"] is False
    assert set(info.parameters.get("required", ())) <= set(info.parameters["properties"])
    for vendor in ("openai", "anthropic", "gemini"):
        assert clean(info.parameters, vendor)["type"] == "object"
    assert faults(info.parameters, {"no such argument": 1})


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    root, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
    (outside / "secret").write_text("sk-known-secret\n")
    (root / "inside").write_text("plain\n")
    (root / "leaf").symlink_to(outside / "secret")
    (root / "parent").symlink_to(outside)
    os.link(outside / "secret", root / "hard")
    async with opened(root, TOOLS, Settings(host="gateway", policy=Policy("full", "off"))) as made:
        yield made


def leading_out(outside: Path) -> list[str]:
    return [
        "../outside/secret", "a/../../outside/secret", str(outside / "secret"), "~/secret", "leaf", "parent/secret",
        "hard", "file:///etc/passwd", f"file://{outside}/secret", "a\0b", "\\\\host\\share", "/etc/passwd", "/dev/zero",
        "/proc/self/environ", "inside/../../outside/secret",
    ]  # fmt: skip


def attempts(path: str) -> list[tuple[str, dict[str, Any]]]:
    update = f"*** Begin Patch\n*** Update File: {path}\n-sk-known-secret\n+evil\n*** End Patch"
    add = f"*** Begin Patch\n*** Add File: {path}\n+evil\n*** End Patch"
    drop = f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"
    move = f"*** Begin Patch\n*** Update File: inside\n*** Move to: {path}\n-plain\n+evil\n*** End Patch"
    edit = [{"oldText": "sk-known-secret", "newText": "evil"}]
    return [
        ("read", {"path": path}),
        ("write", {"path": path, "content": "evil"}),
        ("edit", {"path": path, "edits": edit}),
        *(("apply_patch", {"input": patch}) for patch in (update, add, drop, move)),
        ("ls", {"path": path}),
        ("find", {"pattern": "*", "path": path}),
        ("grep", {"pattern": "secret", "path": path}),
    ]


async def test_no_tool_for_files_leaves_the_workspace(place: Place) -> None:
    outside = place.root.parent / "outside"
    for path in leading_out(outside):
        for name, arguments in attempts(path):
            result = await place.call(name, **arguments)
            assert "sk-known-secret" not in result.text, (name, path)
            assert name in {"grep", "find"} or result.is_error, (name, path)
    assert await asyncio.to_thread((outside / "secret").read_text) == "sk-known-secret\n"
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert await asyncio.to_thread((place.root / "inside").read_text) == "plain\n"


async def test_names_that_would_be_commands_are_only_names(place: Place) -> None:
    """Class of injection into our own calls: nothing a tool is given becomes part of a shell line."""
    for name in (
        "a;touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "-rf",
        "--help",
        "a b'c\"d",
        "%PATH%",
        "a&b",
        "a\nb",
    ):
        assert await place.said("write", path=name, content="x")
        assert await place.said("read", path=name) == "x"
        assert await place.said("grep", pattern="x", path=name, literal=True)
        assert await place.said("find", pattern=name)
        assert "pwned" not in (await place.call("grep", pattern=name)).text.split("\n")
    assert not await asyncio.to_thread((place.root / "pwned").exists)
