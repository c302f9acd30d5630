"""The shell lines of the documents are run as they stand, page by page, in a home with a gateway and a model."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from docs.make.page import ROOT

from garra.testing.model_server import ModelServer
from tests.docs.blocks import Block, blocks
from tests.e2e.program import Program
from tests.e2e.resident import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(170)]
SECONDS = 40
HASH = "garra gateway call config.get --json | python -c 'import json,sys; print(json.load(sys.stdin)[\"hash\"])'"
"""The state of the configuration that the gateway serves by."""
TOKEN = "token-of-the-documents-0123456789"
PORT = "18789"


def pages() -> list[tuple[str, list[Block]]]:
    """The pages with something to run, each with its blocks."""
    runnable = [block for block in blocks() if block.lang == "sh" and not block.reason]
    return [(path, list(group)) for path, group in itertools.groupby(runnable, key=lambda block: block.path)]


SHARES = 3
"""In how many tests the pages are run, so that two of them run at a time; each has one gateway."""


@asynccontextmanager
async def house(home: Path) -> AsyncIterator[tuple[Program, int]]:
    async with ModelServer() as model:
        program, port = Program(home), free_port()
        (home / "work").mkdir()
        program.configure(
            gateway={"port": port, "auth": {"mode": "token", "token": TOKEN}},
            models={
                "providers": {
                    "fake": {
                        "api": "openai-completions", "baseUrl": f"{model.url}/v1", "apiKey": "none",
                        "models": [{"id": "fake", "name": "Fake", "contextWindow": 200_000}],
                    }
                }
            },
            agents={"defaults": {"model": {"primary": "fake/fake"}}},
        )  # fmt: skip
        with (home / "gateway.log").open("wb") as log:
            running = await asyncio.to_thread(
                subprocess.Popen, program.argv("gateway", "run"), env=program.variables, stdout=log, stderr=log
            )
        try:
            await asyncio.to_thread(shell, program, port, READY)
            yield program, port
        finally:
            running.terminate()
            await asyncio.to_thread(running.wait, 30)


READY = "for _ in $(seq 200); do garra health >/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1"


def shell(program: Program, port: int, code: str) -> subprocess.CompletedProcess[str]:
    """Run shell lines where the gateway is on `port`; what they read of standard input is a secret."""
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-eu", "-c", code.replace(PORT, str(port))],
        cwd=program.home / "work", env={**program.variables, "PATH": path}, input="a-secret-of-the-page\n",
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip


@pytest.mark.parametrize("share", range(SHARES))
async def test_what_the_pages_show_can_be_done(share: int, tmp_path: Path) -> None:
    broken = []
    async with house(tmp_path) as (program, port):
        for _, own in pages()[share::SHARES]:
            broken += await asyncio.to_thread(wrongs, program, port, own)
        log = (tmp_path / "gateway.log").read_text()
    assert not broken, "\n\n".join(broken)
    assert "Traceback" not in log


def wrongs(program: Program, port: int, own: list[Block]) -> list[str]:
    """What went wrong on one page. Its changes of the configuration are taken back."""
    before = program.config.read_text()
    try:
        return [fault for block in own if (fault := wrong(program, port, block))]
    finally:
        if program.config.read_text() != before:
            program.config.write_text(before)
            shell(program, port, READY)  # the gateway takes it over a moment later, its token too


def wrong(program: Program, port: int, block: Block) -> str:
    """What went wrong in a block; empty when nothing did."""
    for what, code in (("given", block.given), ("shown", block.code)):
        ran = shell(program, port, code)
        if ran.returncode or "Traceback" in ran.stderr:
            return (
                f"{block.where} ({what}): exit code {ran.returncode}\n{code}\n{ran.stdout[-600:]}\n{ran.stderr[-600:]}"
            )
    return ""
