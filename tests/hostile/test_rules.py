"""Rules with something missing or misspelt open nothing, and what was taken back opens nothing any more."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import websockets

from tests.e2e.resident import TOKEN, Resident, strict_model
from tests.hostile.cases import Hostile, of
from tests.hostile.test_shell import Machine, machine
from tests.hostile.test_wire import listening, status

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

OPEN = '{"version": 1, "agents": {"main": {"allowlist": [{"pattern": "touch"}]}}}'
OTHER = "another-token-0123456789abcdef"


async def rule(here: Machine, document: str) -> int:
    """Put it in force, with the command line; its exit code."""
    file = here.program.root / "document.json"
    await asyncio.to_thread(file.write_text, document)
    code, out, err = await here.program.run("approvals", "set", "--file", str(file))
    assert "Traceback" not in out + err
    return code


async def test_a_document_that_lacks_something_opens_nothing(tmp_path: Path) -> None:
    made = tmp_path / "made"
    async with machine(tmp_path) as here:
        found = {}
        for case in of("rules"):
            code = await rule(here, case["document"])
            told = await here.run("main", command=f"touch {made}")
            if made.exists():
                found[case.id] = f"it ran (set: {code}): {told}"
                await asyncio.to_thread(made.unlink)
            elif "No command was run" not in told:
                found[case.id] = told
        assert not found, json.dumps(found, indent=1)
        assert await rule(here, OPEN) == 0
        await here.run("main", command=f"touch {made}")
        assert made.exists()  # the control


async def renewed(program: Resident) -> None:
    """Another token, and the second that it takes to be heard."""
    program.config["gateway"]["auth"]["token"] = OTHER
    await asyncio.to_thread(program.write)
    async with asyncio.timeout(20):
        good = [f"Host: 127.0.0.1:{program.port}", f"Authorization: Bearer {OTHER}"]
        while (await status(program, "/v1/models", good))[0] != 200:  # noqa: ASYNC110 - it asks over the wire
            await asyncio.sleep(0.1)


async def token_fault(program: Resident, case: Hostile) -> str:
    """Whether the old token still opens."""
    if case["then"] == "request":
        old = [f"Host: 127.0.0.1:{program.port}", f"Authorization: Bearer {TOKEN}"]
        found = (await status(program, "/v1/models", old))[0]
        return "" if found == 401 else f"{found}"
    try:
        async with program.client() as client:
            await client.call("health")
    except (RuntimeError, websockets.ConnectionClosed):
        return ""
    return "it came in"


async def test_what_was_taken_back_opens_no_more(tmp_path: Path) -> None:
    cases = {case["then"]: case for case in of("revoked")}
    async with strict_model() as model, listening(tmp_path / "a", model.url) as program, program.client() as client:
        await client.call("health")  # the control
        await renewed(program)
        with pytest.raises(websockets.ConnectionClosed):
            async with asyncio.timeout(1):
                while True:
                    await client.call("health")
        for then in ("connect", "request"):
            assert await token_fault(program, cases[then]) == "", then
    (tmp_path / "b").mkdir()
    made = tmp_path / "made"
    async with machine(tmp_path / "b") as here:
        assert await rule(here, OPEN) == 0
        await here.run("main", command=f"touch {made}")
        assert made.exists()  # the control
        await asyncio.to_thread(made.unlink)
        assert await rule(here, '{"version": 1, "agents": {}}') == 0
        assert "No command was run" in await here.run("main", command=f"touch {made}"), cases["command"].id
        assert not made.exists()
