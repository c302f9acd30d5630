"""What the documents show is right: commands exist, configurations fit, manifests parse, Python runs."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from docs.make.page import ROOT

from garra.config.load import load
from garra.config.paths import resolve
from garra.io.env import Environment
from garra.sdk import manifest
from tests.docs.blocks import LANGUAGES, NOT_RUN, Block, blocks, documents, faults

BROUGHT = frozenset({"visits"})
"""Commands that pages bring with a plugin of their own."""


def shown(*langs: str) -> list[Any]:
    return [pytest.param(block, id=block.where) for block in blocks() if block.lang in langs]


def test_every_block_says_what_it_is() -> None:
    odd = [f"{block.where}: {block.lang or 'nothing'}" for block in blocks() if block.lang not in LANGUAGES]
    assert not odd, f"one of {', '.join(sorted(LANGUAGES))}"


def test_pages_open_with_an_example() -> None:
    """Of concepts, channels, tools and how-tos, before anything else is told at length."""
    late = []
    for path in documents():
        text = (ROOT / path).read_text()
        kind = path.split("/")[1] if path.startswith("docs/") else ""
        if kind in ("concepts", "channels", "tools", "howto") and path != "docs/concepts/architecture.md":
            before = text.partition("\n## ")[0].partition("```")
            late += [] if before[1] and len(before[0].splitlines()) <= 14 else [path]
    assert not late


def test_few_are_not_run_and_say_why() -> None:
    silent = [block for block in blocks() if block.reason]
    assert len(silent) <= NOT_RUN, "\n".join(f"{block.where}: {block.reason}" for block in silent)
    assert all(len(block.reason) >= 12 for block in silent)


@pytest.mark.parametrize("path", documents())
def test_commands_and_options_exist(path: str) -> None:
    text = (ROOT / path).read_text()
    code = re.findall(r"^ *```\w+\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE) + re.findall(
        r"(?<!`)`([^`\n]+)`(?!`)", text
    )
    wrong = [fault for each in code for fault in faults(each, BROUGHT)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", documents())
def test_make_knows_what_is_made(path: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = (ROOT / path).read_text()
    named = re.findall(r"`make ([a-z0-9-]+)", text) + re.findall(r"^(?:\$ )?make ([a-z0-9-]+)", text, re.MULTILINE)
    assert not {name for name in named if not name.isdecimal()} - targets


@pytest.mark.parametrize("block", [each for each in shown("json5") if not each.values[0].reason])
def test_configurations_fit(block: Block, tmp_path: Path) -> None:
    state = tmp_path / ".garra"
    state.mkdir(mode=0o700)
    code = (
        block.code if block.code.lstrip(" /").startswith("{") or block.code.startswith("//") else f"{{{block.code}\n}}"
    )
    (state / "garra.json").write_text(code)
    for name in re.findall(r'"\./([\w-]+\.json5)"', block.code):
        (state / name).write_text("{}")
    names = dict.fromkeys(re.findall(r"\$\{(\w+)\}", block.code), "x")
    env = Environment({"HOME": str(tmp_path), **names})
    found = load(resolve(env), env)
    told = [f"{each.path}: {each.message}" for each in (*found.issues, *found.warnings)]
    assert found.exists
    assert not [line for line in told if "unavailable" not in line], block.code


@pytest.mark.parametrize("block", shown("json"))
def test_json_is_json(block: Block) -> None:
    assert json.loads(block.code) is not None


@pytest.mark.parametrize("block", shown("toml"))
def test_manifests_parse(block: Block) -> None:
    body = tomllib.loads(block.code)
    if "kind" in body:
        assert manifest.parse("manifest.toml", block.code, block.where).id


@pytest.mark.parametrize("path", sorted({block.path for block in blocks() if block.lang == "python"}))
async def test_python_runs(path: str, tmp_path: Path) -> None:
    """The blocks of a page, one after the other, in one process."""
    own = [block for block in blocks() if block.path == path and block.lang == "python"]
    for block in own:
        compile(block.code, block.where, "exec", flags=0)
    code = "\n\n".join(block.code for block in own if not block.reason)
    (tmp_path / "page.py").write_text(code)
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "error", "page.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ran.returncode == 0, ran.stderr
