"""Arguments of tools through the running gateway: paths, addresses, surroundings and commands in the sandbox."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.testing.web import Request, answered, serving
from tests.e2e.resident import KEY, TOKEN, Client, Resident, StrictModel, resident, strict_model
from tests.hostile.cases import Hostile, of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SECRET = "WHAT IS THE OWNER'S ALONE"
PATCH = "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch"
LISTED = {"fetch": {"ssrfPolicy": {"allowedHostnames": ["127.0.0.9"]}}}


@dataclass
class House:
    program: Resident
    model: StrictModel
    client: Client
    outside: Path
    turns: int = 0

    @property
    def workspace(self) -> Path:
        return self.program.state / "workspace"

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """One call in a conversation of its own; what the model was told."""
        self.turns += 1
        last = await self.client.say(f"tool:{tool} {json.dumps(arguments)}", f"agent:main:case-{self.turns}")
        assert last["state"] == "final", last
        told = [said["content"] for said in self.model.requests[-1].body["messages"] if said["role"] == "tool"]
        return told[-1] if isinstance(told[-1], str) else json.dumps(told[-1])

    def filled(self, text: str, **more: object) -> str:
        pid = self.program.process.pid if self.program.process else 0
        facts = {"outside": self.outside, "state": self.program.state, "gateway": self.program.port, "pid": pid,
                 "long": "a/" * 3_000, **more}  # fmt: skip
        for name, fact in facts.items():
            text = text.replace(f"{{{name}}}", str(fact))
        return text

    def untouched(self) -> dict[str, bytes]:
        """All that no tool may change."""
        kept = [path for path in self.outside.rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in (*kept, self.program.config_file)}


@asynccontextmanager
async def house(root: Path, **more: Any) -> AsyncIterator[House]:
    outside = root / "outside"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    (outside / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n" + SECRET.encode())
    async with strict_model() as model, resident(root, model.url, more or None) as program, program.client() as client:
        here = House(program, model, client, outside)
        await client.say("hello")
        (here.workspace / "leaf").symlink_to(outside / "secret")
        (here.workspace / "parent").symlink_to(outside)
        os.link(outside / "secret", here.workspace / "hard")
        yield here


async def faults(cases: tuple[Hostile, ...], fault: Callable[[Hostile], Any]) -> str:
    """What went wrong with which; empty when all were kept out."""
    found = {case.id: wrong for case in cases if (wrong := await fault(case))}
    return json.dumps(found, indent=1) if found else ""


def leaked(told: str) -> str:
    return next((f"it tells {secret!r}: {told[:200]}" for secret in (SECRET, KEY, TOKEN) if secret in told), "")


def calls(tool: str, path: str) -> list[tuple[str, dict[str, Any]]]:
    """How a path is put into a call of a tool."""
    if not tool:
        return [("read", {"path": path}), ("write", {"path": path, "content": "planted"})]
    by_tool: dict[str, dict[str, Any]] = {
        "apply_patch": {"input": PATCH.format(path)},
        "edit": {"path": path, "edits": [{"oldText": "OWNER", "newText": "planted"}]},
        "ls": {"path": path},
        "grep": {"path": path, "pattern": "OWNER"},
        "find": {"path": path, "pattern": "*"},
        "view_image": {"path": path},
        "pdf": {"pdf": path},
    }
    return [(tool, by_tool[tool])]


async def test_no_path_leads_out(tmp_path: Path) -> None:
    more = {"tools": {"toolSearch": False, "loopDetection": {"enabled": False}}}
    async with house(tmp_path, **more) as here:

        async def fault(case: Hostile) -> str:
            for tool, arguments in calls(case.get("tool", ""), here.filled(case["path"])):
                told = await here.call(tool, arguments)
                if wrong := leaked(told):
                    return f"{tool}: {wrong}"
                if tool in ("ls", "find") and "secret.png" in told:
                    return f"{tool} lists what is outside"
                if await asyncio.to_thread(here.untouched) != before:
                    return f"{tool} changed something outside"
            return ""

        assert SECRET not in await here.call("read", {"path": "notes.md"})
        await here.call("write", {"path": "notes.md", "content": "planted"})
        assert "planted" in await here.call("read", {"path": "notes.md"})  # the control
        before = await asyncio.to_thread(here.untouched)
        assert not await faults(of("files"), fault)
        assert not list(here.program.state.glob("planted"))


async def test_no_address_leads_in(tmp_path: Path) -> None:
    reached: list[str] = []
    leads = [""]

    async def inner(request: Request) -> bytes:
        reached.append(request.path)
        return answered(200, SECRET.encode(), "text/plain")

    async def outer(_: Request) -> bytes:
        if not leads[0]:
            return answered(200, b"a page for everyone", "text/plain")
        return f"HTTP/1.1 302 x\r\nlocation: {leads[0]}\r\ncontent-length: 0\r\n\r\n".encode()

    async with (
        serving(inner) as url,
        serving(outer, host="127.0.0.9") as listed,
        house(tmp_path, tools={"web": LISTED, "loopDetection": {"enabled": False}}) as here,
    ):
        ports = {"port": url.rpartition(":")[2], "listed": listed.rpartition(":")[2]}

        async def fault(case: Hostile) -> str:
            leads[0] = here.filled(case.get("leads", ""), **ports)
            url = here.filled(case["url"], **ports)
            told = await here.call("web_fetch", {"url": f"{url}?{here.turns}" if leads[0] else url})
            if reached or "root:x:0" in told:
                reached.clear()
                return f"it was reached: {told[:200]}"
            return leaked(told) or ("it was fetched" if "a page for everyone" in told else "")

        assert "a page for everyone" in await here.call("web_fetch", {"url": f"{listed}/"})  # the control
        assert not await faults(of("inward"), fault)


@pytest.mark.needs("bwrap")
async def test_no_argument_chooses_what_runs(tmp_path: Path) -> None:
    async with house(tmp_path, tools={"loopDetection": {"enabled": False}}) as here:

        async def fault(case: Hostile) -> str:
            told = await here.call("exec", {"command": "echo IT RAN; touch made", **case["more"]})
            return f"it ran: {told[:200]}" if "IT RAN" in told or (here.workspace / "made").exists() else ""

        for more in ({}, {"env": {"WORD": "fine"}}, {"workdir": "."}):  # the controls
            assert "IT RAN" in await here.call("exec", {"command": "echo IT RAN", **more})
        assert not await faults(of("surroundings"), fault)


@pytest.mark.needs("bwrap")
async def test_no_command_leaves_the_sandbox(tmp_path: Path) -> None:
    async with house(tmp_path, tools={"loopDetection": {"enabled": False}}) as here:
        made = here.outside / "made"

        async def fault(case: Hostile) -> str:
            line = here.filled(case["line"], made=made)
            told = await here.call("exec", {"command": f"{{ {line}\n}} 2>&1; echo END"})
            if "END" not in told and "No command was run" not in told and "kill" not in line:
                return f"nothing is known of it: {told[:200]}"
            if made.exists() or await asyncio.to_thread(here.untouched) != before:
                return f"something outside is another: {told[:200]}"
            if (never := case.get("never")) and never in told:
                return f"it tells {never}: {told[:200]}"
            return leaked(told)

        before = await asyncio.to_thread(here.untouched)
        assert "fine" in await here.call("exec", {"command": "echo fine > f; cat f"})  # the control
        assert not await faults(of("box"), fault)
        await asyncio.sleep(1.2)  # what stayed behind would have done its work
        assert not made.exists()
        assert await here.program.ready()


async def test_no_argument_becomes_a_command(tmp_path: Path) -> None:
    more = {"tools": {"toolSearch": False, "loopDetection": {"enabled": False}}}
    async with house(tmp_path, **more) as here:

        async def fault(case: Hostile) -> str:
            if name := case.get("file"):
                await asyncio.to_thread((here.workspace / name).write_text, "x\n")
            told = await here.call(case["tool"], case["arguments"])
            made = await asyncio.to_thread(lambda: [*tmp_path.rglob("made"), *tmp_path.rglob("made.pdf")])
            return f"it was run: {told[:200]}" if made or "root:x:0" in told else ""

        await here.call("write", {"path": "notes", "content": "crab"})
        assert "crab" in await here.call("grep", {"pattern": "crab"})  # the control
        assert not await faults(of("spliced"), fault)
