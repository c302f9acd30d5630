"""kill -9 at random moments of tool turns: the same session answers after each restart, its history always valid."""

from __future__ import annotations

import asyncio
import json
import os
import random
from pathlib import Path

import pytest
import websockets

from tests.e2e.resident import Resident, StrictModel, strict_model, words

ROUNDS = int(os.environ.get("GARRA_KILLS", "50"))
TOOL = 'tool:exec {"command": "echo working; sleep 0.15; echo worked"}'

pytestmark = pytest.mark.e2e


async def turn_and_kill(program: Resident, number: int, after_s: float) -> None:
    """Begin a turn with a tool call and kill the gateway `after_s` after it was sent."""

    async def killer() -> None:
        await asyncio.sleep(after_s)
        program.kill()

    killing = asyncio.ensure_future(killer())
    try:
        async with program.client() as client:
            await client.say(f"round {number} {TOOL}")
    except (OSError, websockets.WebSocketException, RuntimeError):
        pass  # the gateway died under us, as it should
    await killing
    await program.gone()


async def answers(program: Resident, model: StrictModel, number: int) -> None:
    """The same session answers, and knows what was said before the kill."""
    async with program.client() as client:
        last = await client.say(f"after {number}")
    assert last["state"] == "final", f"round {number}: {last.get('errorMessage')}"
    assert f"after {number}" in words(last)
    assert not model.refused, f"round {number}: {model.refused}"


@pytest.mark.timeout(900)
@pytest.mark.needs("bwrap")
@pytest.mark.req("LOOP-04", "SESS-05")
async def test_fifty_kills(tmp_path: Path) -> None:
    chance = random.Random(4)
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        await program.start()
        for number in range(ROUNDS):
            await turn_and_kill(program, number, chance.uniform(0.0, 0.6))
            await program.start()
            await answers(program, model, number)
        assert await program.stop() == 0
        said = json.dumps([request.body["messages"] for request in model.requests[-1:]])
        kept = sum(f"after {number}" in said for number in range(ROUNDS))
        assert kept == ROUNDS
    files = list((program.state / "agents/main/sessions").glob("*.jsonl"))
    for line in (line for file in files for line in file.read_text().splitlines()):
        json.loads(line)
