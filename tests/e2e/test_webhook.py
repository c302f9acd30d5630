"""The whole program and a program of somebody's that calls it and is called, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from garra.testing.webhook import SECRET, Peer, message, signed
from tests.e2e.resident import Resident, StrictModel, resident, strict_model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]


@dataclass
class World:
    peer: Peer
    model: StrictModel
    program: Resident
    count: int = 0

    async def say(self, text: str, chat: str = "ann", called: str = "", **more: Any) -> int:
        """One signed call; the status."""
        self.count += 1
        called = called or f"msg_{self.count}"
        body = message(text, chat, **more)
        return (await self.post(signed(SECRET, called, int(time.time()), body), body))[0]

    async def taken(self) -> None:
        """The account is up: a call that says nothing is taken."""
        for _ in range(400):
            if await self.say("") == 200:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(self.program.log())

    async def post(self, head: dict[str, str], body: bytes, length: int | None = None) -> tuple[int, bytes]:
        """(status, body); `length` claims a body that never comes whole."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.program.port)
        lines = [
            "POST /webhook HTTP/1.1",
            "Host: localhost",
            "Connection: close",
            f"Content-Length: {len(body) if length is None else length}",
            *(f"{name}: {value}" for name, value in head.items()),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        try:
            async with asyncio.timeout(10):
                said, _, rest = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.transport.abort()
        return int(said.split(b" ")[1]), rest

    async def until(self, found: Callable[[], object]) -> None:
        for _ in range(1_000):
            if found():
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"{self.peer.taken}\n{self.program.log()}")

    async def heard(self, text: str, chat: str = "ann") -> None:
        await self.until(lambda: any(text in said for said in self.peer.shown(chat)))


@asynccontextmanager
async def world(folder: Path, **channel: Any) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        peer = await stack.enter_async_context(Peer())
        model = await stack.enter_async_context(strict_model())
        own = {"secret": SECRET, "url": f"{peer.url}/in", "allowPrivateNetwork": True, **channel}
        more = {"channels": {"webhook": own}, "messages": {"inbound": {"debounceMs": 0}}}
        program = await stack.enter_async_context(resident(folder, model.url, more))
        found = World(peer, model, program)
        await found.taken()
        yield found


async def test_a_stranger_is_paired_and_a_restart_keeps_it(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        assert await here.say("hello") == 200
        await here.heard("approve webhook")
        assert here.model.requests == []
        code = re.search(r"\b[A-HJ-NP-Z2-9]{8}\b", here.peer.shown("ann")[0])
        assert code is not None
        done, out, err = await here.program.run("pairing", "approve", "webhook", code[0])
        assert done == 0, out + err
        assert await here.say("are you there?") == 200
        await here.heard("are you there?")
        await here.program.stop()
        await here.program.start()
        await here.taken()
        assert await here.say("still there?") == 200
        await here.heard("still there?")
        assert await here.say("and me?", "mallory") == 200
        await here.heard("approve webhook", "mallory")
        assert not here.model.asked("and me?")


async def test_only_signed_calls_are_heard_and_each_once(tmp_path: Path) -> None:
    async with world(tmp_path, dmPolicy="open", allowFrom=["*"]) as here:
        body = message("replayed")
        head = signed(SECRET, "msg_r", int(time.time()), body)
        assert [(await here.post(head, body))[0] for _ in range(3)] == [200, 200, 200]
        await here.heard("replayed")
        assert (await here.post(head, body + b" "))[0] == 401
        assert await here.post({}, body) == (401, b"")
        late = signed(SECRET, "msg_l", int(time.time()) - 400, body)
        assert await here.post(late, body) == (401, b"")
        assert (await here.post({}, b"", length=1 << 30))[0] == 401  # by its head: none of the body is waited for
        assert (await here.post(signed(SECRET, "x", int(time.time()), b""), b"", length=1 << 30))[0] == 413
        assert (await here.post(head, b"\xff", length=1))[0] == 401
        await here.program.stop()
        await here.program.start()
        await here.taken()
        assert (await here.post(head, body))[0] == 200
        assert await here.say("last") == 200
        await here.heard("last")
        assert len([said for said in here.peer.shown("ann") if "replayed" in said]) == 1
        assert len(here.model.asked("replayed")) >= 1
        _, out, _ = await here.program.run("channels", "status", "--json")
        (row,) = json.loads(out)["channelAccounts"]["webhook"]
        assert row["connected"]
        assert row["lastInboundAt"]
        assert SECRET not in out + here.program.log()


async def test_killed_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    async with world(tmp_path, dmPolicy="open", allowFrom=["*"]) as here:
        for number in range(6):
            assert await here.say(f"word{number}", f"chat{number}") == 200
        here.program.kill()
        await here.program.gone()
        await here.program.start()
        for number in range(6):
            await here.heard(f"word{number}", f"chat{number}")
        for number in range(6):
            assert len(here.peer.shown(f"chat{number}")) == 1


async def test_a_receiver_that_is_away_gets_its_answers_later(tmp_path: Path) -> None:
    async with world(tmp_path, dmPolicy="open", allowFrom=["*"]) as here:
        port = here.peer.port
        await here.peer.__aexit__()
        assert await here.say("are you away?") == 200
        await here.until(lambda: here.model.asked("are you away?"))
        here.peer = await Peer(port=port).__aenter__()
        try:
            await here.heard("are you away?")
            assert len(here.peer.shown("ann")) == 1
        finally:
            await here.peer.__aexit__()
