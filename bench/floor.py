"""What the machine itself costs: a call of the fake model over a bare socket, a commit, a durable line, a process."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.figures import latency
from bench.ground import MODEL_PORT, STACK, Ground
from bench.products import Product
from bench.synth import text

SHORT, LONG = 1, 10_000


def calls(ground: Ground, _: Sequence[Product], count: int) -> None:
    """The least that a turn must spend on each of these."""
    for name, messages, times in (("short call", SHORT, count), ("long call", LONG, 10)):
        body = _request(messages)
        ground.book.write(STACK, name, **latency(asyncio.run(_called(body, times))), request_bytes=len(body))
    with tempfile.TemporaryDirectory() as folder:
        ground.book.write(STACK, "commit", **latency(_commits(Path(folder), count)))
        ground.book.write(STACK, "durable line", **latency(_lines(Path(folder), count)))
    ground.book.write(STACK, "process", **latency(_timed(count, lambda: subprocess.run(["true"], check=True))))


def inside(ground: Ground, _: Sequence[Product], count: int) -> None:
    """Commands in their sandboxes, and a flood of output, without a gateway around them."""
    script = Path(__file__).with_name("inside.py")
    ran = subprocess.run([ground.python, str(script), str(count)], check=True, capture_output=True, text=True)
    found = json.loads(ran.stdout)
    over = {f"{name}_over_ms": round(found[f"{name}_ms"] - found["bare_ms"], 2) for name in ("bwrap", "landlock")
            if f"{name}_ms" in found}  # fmt: skip
    ground.book.write("garra", "inside", **found, **over)


def _timed(count: int, action: Callable[[], object]) -> list[float]:
    took = []
    for _ in range(count):
        began = time.monotonic()
        action()
        took.append(time.monotonic() - began)
    return took


def _request(messages: int) -> bytes:
    said = [{"role": "assistant" if n % 2 else "user", "content": text(n)} for n in range(messages)]
    return json.dumps(
        {"model": "fake", "stream": True, "messages": [*said, {"role": "user", "content": "hi"}]}
    ).encode()


async def _called(body: bytes, count: int) -> list[float]:
    """Seconds of each call, from the first byte sent to the last chunk read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", MODEL_PORT)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
    took = []
    for _ in range(count):
        began = time.monotonic()
        writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + body)
        await reader.readuntil(b"\r\n\r\n")
        while size := int(await reader.readuntil(b"\r\n"), 16):
            await reader.readexactly(size + 2)
        await reader.readexactly(2)
        took.append(time.monotonic() - began)
    writer.close()
    return took


def _commits(folder: Path, count: int) -> list[float]:
    db = sqlite3.connect(folder / "floor.db", isolation_level=None)
    for line in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE line (words TEXT)"):
        db.execute(line)
    took = _timed(count, lambda: db.execute("INSERT INTO line VALUES (?)", ("x" * 300,)))
    db.close()
    return took


def _lines(folder: Path, count: int) -> list[float]:
    out = os.open(folder / "lines", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append() -> None:
        os.write(out, b"x" * 350 + b"\n")
        os.fdatasync(out)

    took = _timed(count, append)
    os.close(out)
    return took
