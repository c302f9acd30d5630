"""Lines that would make a file, through the running gateway: none does unless a person says yes to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.resident import Client, Resident, StrictModel, resident, strict_model
from tests.hostile.cases import Hostile, of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

NARROW = ("ls", "echo", "cat", "head", "wc", "grep", "rg", "date")
LISTS = {
    "main": [{"pattern": name} for name in NARROW] + [{"pattern": "sort", "argPattern": "^-r$"}],
    "wide": [{"pattern": "/usr/bin/*"}],
}
ON_HOST = {
    "tools": {
        "exec": {"host": "gateway", "security": "allowlist", "ask": "on-miss"},
        "loopDetection": {"enabled": False},
    },
    "agents": {
        "defaults": {"model": {"primary": "fake/fake"}},
        "list": [{"id": "main", "default": True}, {"id": "wide"}],
    },
}
PERSON = {
    "scopes": ["operator.admin", "operator.read", "operator.write", "operator.approvals"],
    "caps": ["exec-approvals"],
}


@dataclass
class Reviewer:
    """A person who answers every question the same way, and keeps what was asked."""

    client: Client
    answer: str = "deny"
    asked: list[str] = field(default_factory=list)

    async def watch(self) -> None:
        done: set[str] = set()
        while True:
            rows: Any = await self.client.call("exec.approval.list")
            for row in rows:
                if row["id"] not in done:
                    done.add(row["id"])
                    self.asked.append(json.dumps(row))
                    with contextlib.suppress(RuntimeError):
                        await self.client.call("exec.approval.resolve", {"id": row["id"], "decision": self.answer})
            await asyncio.sleep(0.005)


@dataclass
class Machine:
    program: Resident
    model: StrictModel
    client: Client
    reviewer: Reviewer
    turns: int = 0

    @property
    def workspace(self) -> Path:
        return self.program.state / "workspace"

    async def run(self, agent: str, **arguments: Any) -> str:
        """One turn with one command, in a conversation of its own; what the model was told."""
        self.turns += 1
        last = await self.client.say(f"tool:exec {json.dumps(arguments)}", f"agent:{agent}:case-{self.turns}")
        assert last["state"] == "final", last
        told = [said["content"] for said in self.model.requests[-1].body["messages"] if said["role"] == "tool"]
        return str(told[-1])


@asynccontextmanager
async def machine(root: Path) -> AsyncIterator[Machine]:
    async with strict_model() as model:
        rules = root / "rules.json"
        document = {"version": 1, "agents": {name: {"allowlist": rows} for name, rows in LISTS.items()}}
        await asyncio.to_thread(rules.write_text, json.dumps(document))
        async with resident(root, model.url, ON_HOST) as program:
            code, _, err = await program.run("approvals", "set", "--file", str(rules))
            assert code == 0, err
            async with program.client() as client, program.client(**PERSON) as person:
                reviewer = Reviewer(person)
                watching = asyncio.ensure_future(reviewer.watch())
                yield Machine(program, model, client, reviewer)
                watching.cancel()
                await asyncio.wait([watching])
                for each in (client, person):
                    await each.call("health")  # what came meanwhile is read, so that it can close at once


def planted(workspace: Path, mark: Path) -> None:
    """Programs of the folder that are called like listed ones."""
    workspace.mkdir(exist_ok=True)
    for name in ("ls", "cat", "x.sh", "touch"):
        (workspace / name).write_text(f"#!/bin/sh\n/usr/bin/touch {mark}\n")
        (workspace / name).chmod(0o755)
    (workspace / "x.py").write_text(f"open({str(mark)!r}, 'w')\n")
    (workspace / "x.roff").write_text(f".sy touch {mark}\n")


def listing(root: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


async def fault(here: Machine, case: Hostile, mark: Path) -> str:
    """What went wrong with one; empty when it was kept from running."""
    line = case["line"].replace("{x}", str(mark)).replace("{pad}", "a" * 15_000)
    before, asked = await asyncio.to_thread(listing, here.workspace), len(here.reviewer.asked)
    told = await here.run("wide" if case.get("agent") == "wide" else "main", command=line)
    if mark.exists():
        return "it ran"
    if "No command was run" not in told and not ("refused" in case.expected and "command" in told):
        return f"it was let through: {told[:200]}"
    if await asyncio.to_thread(listing, here.workspace) != before:
        return "something in the folder is another"
    if case.expected == "asked" and len(here.reviewer.asked) != asked + 1:
        return f"a person was asked {len(here.reviewer.asked) - asked} times: {told[:200]}"
    return ""


async def test_no_line_runs_what_nobody_listed(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    async with machine(tmp_path) as here:
        await asyncio.to_thread(planted, here.workspace, mark)
        # the controls: listed ones run unasked, under either list, and a yes does run the rest
        assert "fine" in await here.run("main", command="echo fine | cat")
        assert "fine" in await here.run("wide", command="/usr/bin/printf fine")
        assert here.reviewer.asked == []
        found = {}
        for case in of("shell"):
            if wrong := await fault(here, case, mark):
                found[case.id] = wrong
                await asyncio.to_thread(mark.unlink, missing_ok=True)
        assert not found, json.dumps(found, indent=1)
        here.reviewer.answer = "allow-once"
        for line in ("touch {x}", "echo $(touch {x})", "env -S 'touch {x}'", "./ls"):
            await here.run("main", command=line.replace("{x}", str(mark)))
            assert mark.exists(), line
            await asyncio.to_thread(mark.unlink)
