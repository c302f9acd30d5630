"""Killed around the line that makes a history smaller: the conversation is whole, as it was or as it is now."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Seen
from tests.e2e.crash.points import SMALLER
from tests.e2e.crash.test_points import Doomed
from tests.e2e.resident import StrictModel, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

SUMMARY = b"You sum up a conversation"


class Summing(StrictModel):
    """Sums up where it is asked to."""

    async def _answer(self, seen: Seen, writer: Any) -> bool:
        if seen.method == "POST" and SUMMARY in seen.raw:
            self.replies.insert(0, Say("## Goal\nThe person plans a boat named Petrel."))
        return await super()._answer(seen, writer)


def lines(program: Doomed) -> list[bytes]:
    (file,) = (program.state / "agents" / "main" / "sessions").glob("*.jsonl")
    return file.read_bytes().splitlines()


@pytest.mark.req("SESS-05")
@pytest.mark.parametrize("point", SMALLER)
async def test_a_kill_leaves_the_conversation_whole(tmp_path: Path, point: str) -> None:
    model = Summing()
    model.refused = []
    async with model:
        program = Doomed(tmp_path, model.url, {"agents": {"defaults": {"model": "fake/fake", "skipBootstrap": True}}})
        try:
            program.dies()
            await program.start()
            async with program.client() as client:
                await client.say("My boat is called Petrel.")
                for number in range(4):
                    await client.say(f"turn {number} {'w' * 2_000}")
            await program.stop()
            before = lines(program)
            program.dies(point)
            await program.start()
            async with program.client() as client:
                await client.send("/compact")
                async with asyncio.timeout(30):
                    await program.gone()
            program.dies()
            after = lines(program)
            assert after[: len(before)] == before
            cut = [json.loads(line)["type"] for line in after[len(before) :]]
            assert cut == (["compaction"] if point in ("after-cut", "before-count") else [])
            await program.start()
            async with program.client() as client:
                assert words(await client.say("hello")).endswith("hello")
            assert b"Petrel" in model.requests[-1].raw
            assert not model.refused
        finally:
            program.kill()
            await program.gone()
