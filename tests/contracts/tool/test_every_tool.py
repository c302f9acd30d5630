"""What every tool in the box keeps to: a closed face, effects it names, marks on what is from outside, and an end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest

from garra.core.schema import check, clean, faults
from garra.core.taint import Mark
from garra.sdk.family import Family, Said
from garra.sdk.ports import Exec, Ran
from garra.sdk.tool import Affects, Call, Effect, Prepares, Result, Shows, Tool, ToolContext
from tests.builtin.tools.place import Granted, context
from tests.contracts.tool.every import ANSWERS, AT_ONCE, CALLS, INSIDE, SHOWN, Stuck, tools

TOOLS = {tool.info.name: tool for tool in tools()}
OPEN = {"gateway": ("patch",)}
"""Parts whose keys nobody can list: a patch of the configuration, which its own schema judges."""
STRANGER = Mark("person", "agent:main:telegram:direct:8")


@pytest.fixture(params=sorted(TOOLS))
def tool(request: pytest.FixtureRequest) -> Tool:
    return TOOLS[request.param]


def stuck(root: Path) -> ToolContext:
    """Where nobody ever answers."""
    grants, programs = cast(Granted, Stuck()), cast(Exec, Stuck())
    return replace(context(root, programs, grants), family=cast(Family, Stuck()))


def called(tool: Tool, where: ToolContext) -> Call:
    """The call of it that is right."""
    arguments = CALLS[tool.info.name]
    if isinstance(tool, Prepares):
        arguments = tool.prepare(arguments)
    mended, wrong = check(tool.info.parameters, dict(arguments))
    assert not wrong
    return Call("c", mended, where)


def test_every_tool_is_here() -> None:
    assert set(CALLS) == set(TOOLS)
    assert {*ANSWERS, *SHOWN, *INSIDE, "exec", "process", "subagents"} == set(TOOLS), "does it bring text from outside?"


def objects(schema: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if schema.get("type") == "object":
        yield at, schema
    for name, part in (schema.get("properties") or {}).items():
        yield from objects(part, (*at, name))
    if isinstance(items := schema.get("items"), Mapping):
        yield from objects(items, at)


def test_its_face_is_closed_all_the_way_down(tool: Tool) -> None:
    info = tool.info
    assert info.label
    assert 10 < len(info.description) <= 300
    for at, part in objects(info.parameters):
        if at != OPEN.get(info.name):
            closed = part["additionalProperties"]
            assert closed is False or ("properties" not in part and closed["type"] == "string"), at
            assert set(part.get("required", ())) <= set(part.get("properties", ())), at
    assert faults(info.parameters, {**CALLS[info.name], "no such argument": 1})
    for vendor in ("openai", "anthropic", "gemini"):
        assert clean(info.parameters, vendor)["type"] == "object"


async def test_it_names_what_it_changes(tool: Tool, tmp_path: Path) -> None:
    info = tool.info
    assert set(info.effects) <= set(get_args(Effect))
    assert not isinstance(tool, Affects) or info.effects, "there is nothing of which a call could have fewer"
    where = context(tmp_path, grants=Granted({"own": False, "spawnedBy": ""}))
    if isinstance(tool, Affects) and info.name not in {"exec", "process"}:
        assert set(await tool.affects(called(tool, where))) <= set(info.effects)
    if "configures" in info.effects:
        assert isinstance(tool, Shows), "a person is asked each time, and has to see what for"


async def test_it_can_be_stopped(tool: Tool, tmp_path: Path) -> None:
    """Nothing swallows it, whatever the tool waits for."""
    (tmp_path / "a.txt").write_text("one\n")
    call = called(tool, stuck(tmp_path))
    task = asyncio.create_task(tool.execute(call, lambda _: None))
    done, _ = await asyncio.wait({task}, timeout=1.0 if tool.info.name in AT_ONCE else 0.1)
    assert bool(done) is (tool.info.name in AT_ONCE)
    task.cancel()
    async with asyncio.timeout(2):
        (ended,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(ended, Result if done else asyncio.CancelledError)


@pytest.mark.parametrize("name", sorted(ANSWERS))
async def test_other_peoples_words_are_marked(name: str, tmp_path: Path) -> None:
    told = {"source": STRANGER.source, "where": STRANGER.where}
    where = context(tmp_path, grants=Granted({**ANSWERS[name], "marks": [told]}))
    result = await TOOLS[name].execute(called(TOOLS[name], where), lambda _: None)
    assert result.marks == (STRANGER,)


class Running(Stuck):
    """Commands that have ended, with something from outside in what they printed."""

    ran = Ran("completed", "words", 0, session="s", reached=("x.test",))

    async def run(self, *_: Any) -> Ran:
        return self.ran

    async def poll(self, *_: Any) -> Ran:
        return self.ran


@pytest.mark.parametrize("name", ["exec", "process"])
async def test_what_a_command_brought_is_marked(name: str, tmp_path: Path) -> None:
    where = context(tmp_path, cast(Exec, Running()))
    result = await TOOLS[name].execute(called(TOOLS[name], where), lambda _: None)
    assert result.marks == Running.ran.marks


async def test_what_a_sub_agent_read_is_marked(tmp_path: Path) -> None:
    async def log(*_: Any) -> Said:
        return Said("words", (STRANGER,))

    where = replace(context(tmp_path), family=cast(Family, SimpleNamespace(log=log)))
    assert (await TOOLS["subagents"].execute(called(TOOLS["subagents"], where), lambda _: None)).marks == (STRANGER,)


def test_the_others_are_shown_where_it_is_said() -> None:
    folder = Path(__file__).parents[2] / "builtin" / "tools"
    for place in SHOWN.values():
        file, _, name = place.partition("::")
        _, found, body = (folder / file).read_text().partition(f"async def {name}(")
        assert found, place
        assert "of(" in body.partition("\nasync def ")[0], f"{place} looks at no marks"
