"""A file that a sub-agent made reaches its parent, who can open it and send it on."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Reply, Say, Seen, Use
from tests.e2e.resident import StrictModel, resident, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


class Drawing(StrictModel):
    """Has a helper write a file and name it; opens what it leaves."""

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        if seen.method == "POST":
            self.replies.insert(0, self._reply(seen.body["messages"]))
        return await super()._answer(seen, writer)

    def _reply(self, messages: list[dict[str, Any]]) -> Reply:
        at = max(index for index, message in enumerate(messages) if message["role"] == "user")
        asked, done = str(messages[at]["content"]), messages[-1]["role"] == "tool"
        if "[Subagent Task]" in asked:
            return Say("Done.\nMEDIA: chart.txt") if done else Use("write", {"path": "chart.txt", "content": "a pearl"})
        if "[A sub-agent" in asked:
            left = re.search(r"media://tools/[0-9a-f]{16}", asked)
            if done or left is None:
                return Say(f"It holds: {messages[-1]['content'] if done else 'nothing'}")
            return Use("read", {"path": left[0]})
        return Say("It is being made.") if done else Use("sessions_spawn", {"task": "draw a chart"})


async def test_a_file_that_a_sub_agent_made_is_its_parent_s_to_open(tmp_path: Path) -> None:
    model = Drawing()
    model.refused = []
    async with model, resident(tmp_path, model.url) as house, house.client() as client:
        await client.send("draw")
        said = ""
        async with asyncio.timeout(40):
            while "It holds" not in said:
                await client._read()
                finals = [event["payload"] for event in client.events if event["event"] == "chat"]
                said = " ".join(words(each) for each in finals if each.get("state") == "final")
        assert "a pearl" in said
    assert model.refused == []
