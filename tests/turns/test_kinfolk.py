"""`/subagents`: who works for a conversation, what was said, and an end to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from garra.core.errors import UserError
from garra.testing.model import calls, says
from garra.turns import kinfolk
from garra.turns.kinfolk import words
from tests.runs.family import MAIN, Plan, house
from tests.runs.test_subagents import HANGS, START, ended, spawn

PLAN: Plan = {"go": [spawn(label="scout"), says("x")], "child:": [calls("ls", words="I look"), says("the find")]}


async def test_they_are_listed_logged_and_told_of(tmp_path: Path) -> None:
    async with house(tmp_path, PLAN) as made:
        assert await words(made.table, MAIN, "") == "No sub-agent works for this conversation."
        await made.say("go")
        await ended(made)
        assert (await words(made.table, MAIN, "list")).startswith("1. scout: done, ")
        log = await words(made.table, MAIN, "log 1")
        assert log.splitlines() == ["user: [Subagent Task] child: look", "assistant: I look", "assistant: the find"]
        assert await words(made.table, MAIN, "log scout 1") == "assistant: the find"
        assert "call: ls" in await words(made.table, MAIN, "log 1 20 tools")
        info = await words(made.table, MAIN, "info scout")
        assert "Task: child: look" in info
        assert "depth 1, isolated" in info
        assert info.splitlines()[-1].startswith("Tools, at most: ")
        told = kinfolk.info(replace(made.table.every()[0], tools=("read", "message", "gateway", "ask_user")), 0)
        assert told.splitlines()[-1] == "Tools, at most: read"
        assert await words(made.table, MAIN, "stop 1") == "None was at work."


async def test_one_is_stopped_and_another_conversation_sees_none(tmp_path: Path) -> None:
    async with house(tmp_path, {**START, "child:": [HANGS]}) as made:
        await made.say("go")
        await made.until(lambda: made.table.every()[0].state == "running")
        assert "running" in await words(made.table, MAIN, "list")
        with pytest.raises(UserError, match="There is no sub-agent"):
            await words(made.table, "agent:main:other", "log 1")
        assert await words(made.table, "agent:main:other", "stop all") == "None was at work."
        assert await words(made.table, MAIN, "stop 1") == "Stopped: child: look."
        await ended(made)


@pytest.mark.parametrize("typed", ["dance", "log", "stop", "info"])
async def test_what_it_does_not_know_it_says(tmp_path: Path, typed: str) -> None:
    async with house(tmp_path, START) as made:
        with pytest.raises(UserError, match="/subagents takes"):
            await words(made.table, MAIN, typed)
