"""What is small outside and large inside: the turn ends, the memory stays small, and others are served meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets

from tests.e2e.resident import Client, Resident, StrictModel, strict_model
from tests.e2e.test_network import peak_mib
from tests.hostile.cases import Hostile, of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

MIB = 1 << 20
MORE_MIB = 90
"""What the gateway's memory may grow by at most: a reply's own limits, and what the interpreter keeps."""
SECONDS = 45
HEAD = b"HTTP/1.1 200 x\r\ncontent-type: text/plain\r\n"


@asynccontextmanager
async def flooding(kind: list[str]) -> AsyncIterator[str]:
    """A server that does not stop."""
    packed = gzip.compress(bytes(200 * MIB), 1)
    tasks: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            if kind[0] == "gzip":
                writer.write(HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed) + packed)
                await writer.drain()
            else:
                writer.write(HEAD + (b"\r\n" if kind[0] == "endless" else b""))
                piece = b"x-a: " + b"a" * 1000 + b"\r\n" if kind[0] == "header" else b"a" * 65_536
                while True:
                    writer.write(piece)
                    await writer.drain()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in filter(None, tasks):
            task.cancel()
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)
        await asyncio.sleep(0.1)  # their connections end


@asynccontextmanager
async def house(root: Path, tools: dict[str, Any]) -> AsyncIterator[tuple[Resident, StrictModel]]:
    """A gateway whose model sees pictures."""
    async with strict_model() as model:
        program = Resident(root, model.url, {"tools": tools})
        program.config["models"]["providers"]["fake"]["models"][0]["input"] = ["text", "image"]
        program.write()
        await program.start()
        try:
            yield program, model
        finally:
            program.kill()
            await program.gone()


def png(width: int, height: int, body: bytes = b"") -> bytes:
    def part(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)

    size = width.to_bytes(4) + height.to_bytes(4) + b"\x08\x00\x00\x00\x00"
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", size) + part(b"IDAT", body) + part(b"IEND", b"")


def pdf(stream: bytes, filters: str) -> bytes:
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>",
        b"<</Length %d/Filter[%s]>>stream\n%s\nendstream" % (len(stream), filters.encode(), stream),
    ]
    text, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(text))
        text += b"%d 0 obj%sendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 5\n0000000000 65535 f \n" + table
    return text + head + b"trailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(text)


def furnish(folder: Path) -> None:
    twice = zlib.compress(zlib.compress(bytes(400 * MIB), 1))
    files = {
        "huge.png": png(60_000, 60_000),
        "long.png": png(15_000, 6_000, zlib.compress(bytes(90 * MIB), 1)),
        "bomb.pdf": pdf(twice, "/FlateDecode/FlateDecode"),
        "deep.pdf": b"%PDF-1.4\n1 0 obj" + b"[" * 500_000 + b"endobj\ntrailer<</Root 1 0 R>>\n%%EOF",
        "letters": b"a" * 100_000,
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 30)


async def by_frame(program: Resident, kind: str) -> None:
    """A frame that is refused, or that ends the connection."""
    body = "[" * 100_000 + "]" * 100_000 if kind == "deep" else json.dumps("a" * (40 * MIB))
    frame = f'{{"type": "req", "id": "x", "method": "health", "params": {body}}}'
    wire = await websockets.connect(f"ws://127.0.0.1:{program.port}/", compression=None)
    await Client(wire).connect()
    with contextlib.suppress(websockets.ConnectionClosed, TimeoutError):
        await wire.send(frame)
        async with asyncio.timeout(1):
            while '"id":"x"' not in str(await wire.recv()).replace(" ", ""):
                continue
    if wire.state is websockets.State.OPEN:
        await wire.close()


async def sent(program: Resident, client: Client, model: StrictModel, case: Hostile, url: str) -> None:
    arguments: dict[str, object] = {}
    tool = case.get("tool", "exec" if "command" in case.more else "web_fetch")
    match tool:
        case "exec":
            arguments = {"command": case["command"].replace("{brackets}", "(" * 8_000), "timeout": 20}
        case "web_fetch":
            arguments = {"url": f"{url}/{case.id}"}
        case "grep":
            arguments = {"pattern": "(a+)+$b" if case["file"] == "letters" else "b", "path": case["file"]}
        case "pdf":
            arguments = {"pdf": case["file"]}
        case _:
            arguments = {"path": case["file"]}
    if "frame" in case.more:
        await by_frame(program, case["frame"])
        return
    last = await client.say(f"tool:{tool} {json.dumps(arguments)}", f"agent:main:{case.id.partition('/')[2]}")
    assert last["state"] == "final", last
    assert max(map(len, (seen.raw for seen in model.requests[-1:]))) < 8 * MIB


async def test_nothing_small_takes_much(tmp_path: Path) -> None:
    kind = [""]
    web = {"fetch": {"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}}}
    tools = {"web": web, "toolSearch": False, "loopDetection": {"enabled": False}}
    async with (
        flooding(kind) as url,
        house(tmp_path, tools) as (program, model),
        program.client() as client,
        program.client() as other,
    ):
        await client.say("hello")
        await asyncio.to_thread(furnish, program.state / "workspace")
        await client.say('tool:ls {"path": "."}')  # the control: an ordinary turn, and what it costs
        found = {}
        for case in of("bulk"):
            kind[0] = case.get("serve", "")
            before = peak_mib(program)
            going = asyncio.ensure_future(sent(program, client, model, case, url))
            try:
                async with asyncio.timeout(SECONDS):
                    while not going.done():
                        async with asyncio.timeout(10):
                            await other.call("health")
                        await asyncio.wait([going], timeout=0.2)
                    await going
            except (TimeoutError, AssertionError, RuntimeError, websockets.ConnectionClosed) as error:
                found[case.id] = f"{type(error).__name__} {error}"
                break
            if (grown := peak_mib(program) - before) > MORE_MIB:
                found[case.id] = f"it took {grown} MiB more"
        print(f"at most {peak_mib(program)} MiB")
        assert not found, json.dumps(found, indent=1)
