"""What is seen of the program from outside: its lines, its log, its processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.e2e.resident import KEY, Resident, StrictModel, resident, strict_model


@asynccontextmanager
async def house(root: Path, **more: Any) -> AsyncIterator[tuple[Resident, StrictModel]]:
    """A running gateway with its model."""
    async with strict_model() as model, resident(root, model.url, more or None) as program:
        yield program, model


def plain(text: str) -> str:
    """One line for a person: no traceback, no secret. Gives it without its end."""
    assert text.endswith("\n"), text
    assert len(text.splitlines()) == 1, text
    assert "Traceback" not in text
    assert KEY not in text
    return text.rstrip("\n")


def logged(program: Resident) -> str:
    """Everything the gateway wrote: to its log and to standard error."""
    files = sorted((program.state / "logs").glob("*.log"))
    return program.log() + "".join(file.read_text() for file in files)


async def until(told: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until `told()` is true."""
    async with asyncio.timeout(seconds):
        while not told():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.05)


def sleeping(seconds: str) -> list[int]:
    """Processes `sleep SECONDS` anywhere on this machine."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(int(folder.name))
        except OSError:
            continue
    return found
