"""What the reference says that methods answer is what a running gateway answers."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from docs.make import methods

from tests.e2e.resident import resident, strict_model

pytestmark = pytest.mark.e2e
MAIN = "agent:main:main"
GIVEN: dict[str, dict[str, Any]] = {
    "agent.identity.get": {}, "agents.files.get": {"agentId": "main", "name": "AGENTS.md"},
    "agents.files.list": {"agentId": "main"}, "agents.list": {}, "agents.workspace.list": {"agentId": "main"},
    "chat.history": {"sessionKey": MAIN}, "chat.metadata": {}, "commands.list": {}, "config.get": {},
    "config.schema": {}, "config.schema.lookup": {"path": "gateway.port"}, "doctor.memory.status": {},
    "health": {}, "logs.tail": {},
    "memory.dream": {}, "memory.dreams": {}, "memory.search": {"query": "hello"}, "messages.list": {},
    "models.authStatus": {}, "models.list": {}, "sessions.context": {"key": MAIN}, "sessions.describe": {"key": MAIN},
    "sessions.list": {}, "sessions.preview": {"keys": [MAIN]}, "sessions.search": {"query": "hello"},
    "sessions.usage": {}, "skills.status": {}, "status": {}, "system.info": {}, "tools.catalog": {},
    "tools.effective": {"sessionKey": MAIN}, "tools.explain": {"name": "exec"}, "tools.policy": {}, "trace.list": {},
    "usage.cost": {}, "usage.report": {"by": "day"}, "work.state": {}, "work.stop": {},
}  # fmt: skip


def answers() -> dict[str, set[str]]:
    """By method: the keys that the page names."""
    return {name: set(re.findall(r"`(\w+)`", methods.answer(row))) for name, row in methods.rows().items()}


async def test_answers_have_the_keys_that_are_told(tmp_path: Path) -> None:
    told = await asyncio.to_thread(answers)
    wrong = []
    async with strict_model() as model, resident(tmp_path, model.url) as garra, garra.client() as client:
        await client.say("hello there")
        for name, params in GIVEN.items():
            if more := set(await client.call(name, params)) - told[name]:
                wrong.append(f"{name}: {', '.join(sorted(more))}")
    assert not wrong, "\n".join(wrong)
