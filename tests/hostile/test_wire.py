"""What reaches the gateway's port from a page, a neighbour or somebody with fewer rights."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets

from tests.e2e.resident import TOKEN, Client, Resident, strict_model
from tests.hostile.cases import Hostile, of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

PROBES: dict[str, dict[str, Any]] = {
    "health": {},
    "sessions.list": {},
    "chat.send": {"sessionKey": "agent:main:main", "message": "say:1", "idempotencyKey": "probe"},
    "exec.approval.list": {},
    "exec.approvals.get": {},
}


@asynccontextmanager
async def listening(root: Path, model_url: str) -> AsyncIterator[Resident]:
    """A gateway that answers programs too."""
    program = Resident(root, model_url)
    program.config["gateway"]["http"] = {"endpoints": {"chatCompletions": {"enabled": True}}}
    program.write()
    await program.start()
    try:
        yield program
    finally:
        program.kill()
        await program.gone()


async def status(program: Resident, path: str, head: list[str]) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", program.port)
    writer.write("\r\n".join([f"GET {path} HTTP/1.1", *head, "Connection: close", "", ""]).encode())
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.transport.abort()
    return int(answer.split(b" ")[1]), answer


async def by_request(program: Resident, case: Hostile) -> str:
    def filled(text: str) -> str:
        return text.replace("{port}", str(program.port)).replace("{token}", TOKEN)

    head = [filled(line) for line in case["head"]]
    own = [] if case.get("bare") else [f"Authorization: Bearer {TOKEN}"]
    found, answer = await status(program, filled(case.get("path", "/v1/models")), [*head, *own])
    if TOKEN.encode() in answer:
        return "it tells the token"
    return "" if found in (400, 401, 403) else f"{found}: {answer[:200]!r}"


async def by_frame(program: Resident, case: Hostile) -> str:
    """What a client may after its first frame, against what it should."""
    url, origin = f"ws://127.0.0.1:{program.port}/", case.get("origin")
    try:
        async with websockets.connect(
            url, origin=websockets.Origin(origin) if origin else None, compression=None
        ) as wire:
            client = Client(wire)
            await client.connect(**case["connect"])
            may = [name for name, asked in PROBES.items() if await _reaches(client, name, asked)]
    except (RuntimeError, websockets.WebSocketException) as refused:
        return f"it was shown out: {refused}" if case.get("may") else ""
    return "" if may == case.get("may") else f"it may {may}"


async def _reaches(client: Client, name: str, asked: dict[str, Any]) -> bool:
    try:
        await client.call(name, asked)
    except RuntimeError as refused:
        error = json.loads(str(refused))
        return error["code"] not in ("FORBIDDEN", "UNAUTHORIZED") and "SCOPE" not in json.dumps(error)
    return True


async def test_nobody_passes_for_this_machine_or_for_more_than_he_is(tmp_path: Path) -> None:
    async with strict_model() as model, listening(tmp_path, model.url) as program:
        # the controls: with our own name and the token it is answered, and an owner's client may all of it
        good = [f"Host: 127.0.0.1:{program.port}", f"Authorization: Bearer {TOKEN}"]
        assert (await status(program, "/v1/models", good))[0] == 200
        async with program.client(scopes=["operator.admin"]) as owner:
            assert [name for name in PROBES if name != "chat.send" and await _reaches(owner, name, PROBES[name])]
        found = {}
        for case in of("wire"):
            if wrong := await (by_request if "head" in case.more else by_frame)(program, case):
                found[case.id] = wrong
        assert not found, json.dumps(found, indent=1)
        assert not model.requests
