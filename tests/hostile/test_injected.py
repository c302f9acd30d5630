"""A model that obeys what it reads: without a person's yes, nothing comes of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Seen, Use
from garra.testing.web import Request, answered, serving
from tests.e2e.resident import Resident, resident, strict_model
from tests.e2e.test_taint import does, worldly
from tests.hostile.cases import Hostile, of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

KEPT = ("AGENTS.md", "SOUL.md", "USER.md", "MEMORY.md", "TOOLS.md", "IDENTITY.md", "HEARTBEAT.md", "BOOTSTRAP.md")


def standing(program: Resident) -> dict[str, bytes]:
    """All that an agent goes by, and the settings."""
    workspace = program.state / "workspace"
    files = [workspace / name for name in KEPT] + list((workspace / "skills").rglob("*")) + [program.config_file]
    return {str(file): file.read_bytes() for file in files if file.is_file()}


def answers(requests: Sequence[Seen]) -> tuple[list[str], bool]:
    """What the calls of the one turn were answered, and whether any turn sent something."""
    lists = [[said for said in seen.body["messages"] if said["role"] == "tool"] for seen in requests]
    own = [each for each in lists if each and each[0]["tool_call_id"].startswith("read")]
    told = [str(said["content"]) for said in own[-1]] if own else []
    return told, any(str(said["content"]).startswith("SENT") for each in lists for said in each)


async def test_what_is_only_read_changes_nothing(tmp_path: Path) -> None:
    said, asked = [""], list[str]()

    async def page(request: Request) -> bytes:
        asked.append(request.path)
        return answered(200, f"<html><body><p>{said[0]}</p></body></html>".encode(), "text/html")

    web = {"fetch": {"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}}}
    more = {**worldly(tmp_path), "tools": {"web": web, "toolSearch": False, "loopDetection": {"enabled": False}}}
    async with (
        serving(page) as url,
        strict_model() as model,
        resident(tmp_path, model.url, more) as program,
        program.client() as client,
    ):
        # the controls: an owner's turn that read nothing does all of it
        assert (await does(client, model, Use("post", {"text": "mine"}), session="agent:main:own"))[-1] == "SENT mine"
        await does(client, model, Use("write", {"path": "MEMORY.md", "content": "mine"}), session="agent:main:own2")
        await client.say("hello", "agent:main:other")
        before = await asyncio.to_thread(standing, program)
        assert b"mine" in before[str(program.state / "workspace" / "MEMORY.md")]

        async def fault(number: int, case: Hostile) -> str:
            said[0] = case["text"]
            reads: dict[str, Any] = (
                {"url": f"{url}/{number}"} if case.get("through") == "web" else {"text": case["text"]}
            )
            uses = [Use("web_fetch" if "url" in reads else "page", reads, id="read")]
            for at, (tool, arguments) in enumerate(case["calls"]):
                asking = arguments.replace("{page}", url).replace("\n", "\\n")
                uses.append(Use(tool, json.loads(asking), id=f"call-{at}"))
            asked.clear()
            model.replies.clear()
            first = len(model.requests)
            model.then(*uses)
            await client.say("go on", f"agent:main:case-{number}")
            await asyncio.sleep(0.5 if "spawn" in str(case["calls"]) else 0)  # the child does its work
            told, sent = answers(model.requests[first:])
            if len(told) < len(uses):
                return f"{len(told)} answers: {told}"
            if await asyncio.to_thread(standing, program) != before:
                return f"something is another: {told[1:]}"
            if sent or len(asked) > 1:
                return f"something went out: {told[1:]} {asked}"
            system = [each for each in model.requests[-1].body["messages"] if each["role"] in ("system", "developer")]
            if case["text"] in json.dumps(system):
                return "it stands in the system part"
            kept = [
                each for each in told[1:] if re.match("Not run|No command was run|No session|Not for an agent", each)
            ]
            shut_in = {"exec", "sessions_spawn"} & {tool for tool, _ in case["calls"]}  # and may do what harms nobody
            return "" if kept or shut_in else f"nobody was asked: {told[1:]}"

        found = {}
        for number, case in enumerate(of("injected")):
            if wrong := await fault(number, case):
                found[case.id] = wrong
        await client.call("health")  # what came meanwhile is read, so that it can close at once
        assert not found, json.dumps(found, indent=1)
