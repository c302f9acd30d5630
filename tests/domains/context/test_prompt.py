"""The order of the sections, what stays and what changes, and how large the first request is."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from garra.core.budget import Document
from garra.core.skills import Listed
from garra.domains.context.prompt import KEPT, Prompts, Stable, Turn, sections
from garra.domains.context.workspace import Workspace
from garra.io.files.root import Root
from garra.sdk.model import ToolSpec
from garra.testing.clock import ManualClock

TOOLS = ("read", "write", "exec", "process", "sessions_spawn", "cron", "memory_search", "memory_get")
FILES = tuple(
    Document(name, f"/w/{name}", f"text of {name}")
    for name in ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "BOOTSTRAP.md", "MEMORY.md")
)
FULL = Stable(
    tools=TOOLS,
    workspace="~/.garra/workspace",
    files=FILES,
    skills=(Listed("gh", "- gh: issues (~/.garra/skills/gh/SKILL.md)"),),
    time_zone="Europe/Berlin",
    senders=("owner",),
)


@pytest.fixture
async def prompts() -> Prompts:
    return Prompts(await asyncio.to_thread(sections))


def headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


@pytest.mark.req("LOOP-09", "LOOP-10")
async def test_the_order_of_the_sections(prompts: Prompts) -> None:
    made = prompts.build(FULL, Turn(now="now", heartbeat="look at the mail"))
    assert made.system.splitlines()[0] == "You are a personal assistant running inside Garra."
    assert headings(made.system) == [
        "## Tooling",
        "## Sub-agents",
        "## Tool Call Style",
        "## Safety",
        "## Skills",
        "## Memory",
        "## Time and People",
        "# Project Context",
        "## AGENTS.md",
        "## SOUL.md",
        "## IDENTITY.md",
        "## USER.md",
        "## TOOLS.md",
        "## BOOTSTRAP.md",
        "## MEMORY.md",
    ]
    assert headings(made.tail) == ["## Heartbeats"]
    assert made.tail.endswith("look at the mail\n\nNow: now.")
    assert "{" not in made.system + made.tail


@pytest.mark.req("LOOP-09")
async def test_the_product_is_a_setting(prompts: Prompts) -> None:
    made = prompts.build(replace(FULL, product="OpenClaw"))
    assert made.system.startswith("You are a personal assistant running inside OpenClaw.\n")
    assert headings(made.system) == headings(prompts.build(FULL).system)


@pytest.mark.req("LOOP-11")
async def test_a_minute_later_only_the_tail_differs(prompts: Prompts) -> None:
    first = prompts.build(FULL, Turn(now="Fri 2026-10-09 14:03 CEST"))
    later = prompts.build(replace(FULL), Turn(now="Fri 2026-10-09 14:04 CEST", quiet="group", notes=("A note.",)))
    assert first.system == later.system
    assert first.system is later.system, "kept, not made again"
    assert first.tail != later.tail
    assert "2026" not in first.system
    assert first.report()["systemPrompt"]["hash"] == hashlib.sha256(first.system.encode()).hexdigest()


@pytest.mark.req("LOOP-11")
async def test_only_so_many_prefixes_are_kept(prompts: Prompts) -> None:
    first = prompts.build(FULL)
    for number in range(KEPT):
        assert prompts.build(FULL).system is first.system
        prompts.build(replace(FULL, extra=str(number)))
    prompts.build(replace(FULL, product="x"))
    for number in range(KEPT):
        prompts.build(replace(FULL, extra=f"other {number}"))
    again = prompts.build(FULL)
    assert again.system is not first.system
    assert again.system == first.system


@pytest.mark.req("LOOP-13")
async def test_a_sub_agent_sees_its_rules_and_its_tools(prompts: Prompts) -> None:
    made = prompts.build(replace(FULL, shape="minimal"))
    assert [name for name in headings(made.system) if name.endswith(".md")] == ["## AGENTS.md", "## TOOLS.md"]
    for absent in ("SOUL.md\n", "text of USER.md", "text of MEMORY.md", "## Memory", "## Sub-agents", "Authorised"):
        assert absent not in made.system
    assert "## Your Task" in made.system


@pytest.mark.req("COF-20")
async def test_memory_can_be_switched_off_and_on(prompts: Prompts) -> None:
    assert "## Memory" not in prompts.build(replace(FULL, memory=False)).system
    assert "## Memory" in prompts.build(FULL).system


async def test_no_section_speaks_of_tools_that_are_not_there(prompts: Prompts) -> None:
    made = prompts.build(replace(FULL, tools=("read",)))
    for absent in ("sessions_spawn", "`process`", "`cron`", "memory_search"):
        assert absent not in made.system
    assert "no tools" in prompts.build(replace(FULL, tools=())).system
    assert "## Skills" not in prompts.build(replace(FULL, tools=("exec",))).system


async def test_what_is_told_by_name_only_has_its_section_too(prompts: Prompts) -> None:
    made = prompts.build(replace(FULL, tools=("read",), byname=("sessions_spawn", "cron", "memory_search")))
    for there in ("## Sub-agents", "`cron`", "`memory_search`"):
        assert there in made.system
    assert "Tools: read. " in made.system


async def test_the_identity_line_alone(prompts: Prompts) -> None:
    made = prompts.build(replace(FULL, shape="none"), Turn(now="now"))
    assert (made.system, made.tail) == ("You are a personal assistant running inside Garra.", "")


@pytest.mark.req("LOOP-12")
async def test_a_cut_file_is_said_to_be_cut(prompts: Prompts) -> None:
    long = Document("SOUL.md", "/w/SOUL.md", "x" * 30_000)
    made = prompts.build(replace(FULL, files=(long,)))
    assert "shown in part" in made.system
    assert made.report()["bootstrapTruncation"]["truncatedFiles"] == 1
    assert len(made.system) < 23_000


async def test_the_report_counts_what_is_there(prompts: Prompts) -> None:
    spec = ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
    made = prompts.build(FULL, specs=(spec,))
    report = made.report()
    assert report["systemPrompt"]["chars"] == len(made.system)
    context = report["systemPrompt"]["projectContextChars"]
    assert made.system[-context:].startswith("# Project Context")
    assert report["systemPrompt"]["nonProjectContextChars"] == len(made.system) - context
    assert report["injectedWorkspaceFiles"][0] == {
        "name": "AGENTS.md",
        "path": "/w/AGENTS.md",
        "missing": False,
        "rawChars": 17,
        "injectedChars": 17,
        "truncated": False,
    }
    assert report["tools"]["entries"][0]["propertiesCount"] == 1
    assert report["skills"]["entries"] == [{"name": "gh", "blockChars": 42}]
    json.dumps(report)


async def test_the_first_request_is_small(prompts: Prompts, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    root = await asyncio.to_thread(Root, tmp_path / "workspace")
    workspace = Workspace(root, tmp_path / "workspace.json", ManualClock())
    stable = replace(FULL, files=await workspace.load(), skills=())
    made = prompts.build(stable, Turn(now="Fri 2026-10-09 14:03 CEST"))
    assert "## BOOTSTRAP.md" in made.system
    assert len(made.system) + len(made.tail) <= 4_000
    lite = prompts.build(replace(stable, shape="lite"), Turn(now="Fri 2026-10-09 14:03 CEST"))
    assert len(lite.system) + len(lite.tail) <= 300
