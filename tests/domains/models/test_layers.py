"""The five layers between a name and a provider's server, each replaced by a fake while the others are the real ones:
catalog, selection, logins, families, transport.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.apis.openai_completions.api import OpenAICompletions
from garra.core.events import TextDelta
from garra.core.messages import Assistant
from garra.core.profiles import Profile
from garra.core.secret import Secret
from garra.domains.models.call import Ports
from garra.domains.models.logins import Logins
from garra.domains.models.registry import Models
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.sdk.model import Api, EventStream, ModelRequest
from garra.sdk.ports import DIRECT, Body, Via
from garra.sdk.provider import Offer, Provider
from garra.sdk.stream import Stream
from tests.domains.models.desk import KNOWN, Desk, desk


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with desk() as ready:
        yield ready


class Parrot:
    """A family without a server: it says which key it was given."""

    family = "openai-completions"

    def stream(self, request: ModelRequest, key: str | None) -> EventStream:
        stream = Stream(Assistant((), 1, self.family, request.model.provider, request.model.id))
        stream.push(TextDelta(0, f"the key is {key}"))
        stream.done("stop")
        return stream


class Page:
    """A server's answer that came over no wire."""

    status = 200
    headers: Mapping[str, str] = {"content-type": "text/event-stream"}

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b'data: {"choices":[{"delta":{"content":"by no wire"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    async def read(self, limit: int = 1 << 20) -> bytes:
        return b""


class Wire:
    """A way out that leads nowhere."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @asynccontextmanager
    async def stream(self, method: str, url: str, *, via: Via = DIRECT, **_: Any) -> AsyncIterator[Body]:
        self.asked.append(f"{method} {url}")
        yield Page()

    def client(self, via: Via = DIRECT) -> Any:
        raise AssertionError("nobody asks for the raw client")

    async def warm(self) -> None:
        raise AssertionError("nobody warms it here")


async def said(models: Models, at: Desk, ref: str) -> str:
    stream = models.stream(ModelRequest(models.resolve(ref), "Be short.", at.request("fake/m").messages))
    return (await stream.result()).text


@pytest.mark.req("MODEL-01")
async def test_each_layer_can_be_a_fake(at: Desk, tmp_path: Path) -> None:
    at.configure(at.provider(models=[{"id": "m", "name": "M"}]))
    async with Tasks() as tasks:
        clock, parrot = SystemClock(), Parrot()

        def registry(family: Api, known: tuple[Provider, ...] = KNOWN, logins: Logins | None = None) -> Models:
            ports = Ports(lambda _: family, lambda: at.env, tasks, clock, logins=logins)
            return Models(lambda: at.config, ports, known)

        # who exists
        lone = Provider("lone", "Lone", "openai-completions", "http://lone/v1", models=(Offer("x"),))
        assert {row.ref for row in registry(parrot, (lone,)).rows()} == {"lone/x", "fake/m"}
        # which one is meant, and by whose key
        at.configure({**at.provider(models=[{"id": "m", "name": "M"}]), "agents": {"defaults": {"model": "fake/m"}}})
        assert registry(parrot).resolve().ref == "fake/m"
        assert await said(registry(parrot), at, "fake/m") == "the key is k"
        # the logins
        kept = Profile("fake:mine", "fake", "api_key", Secret("of a login"))
        logins = Logins(Database(tmp_path / "none.db"), clock, borrowed=lambda: (kept,))
        at.configure({"models": {"providers": {"fake": {"api": "openai-completions", "baseUrl": "http://nowhere/v1"}}}})
        assert await said(registry(parrot, logins=logins), at, "fake/m") == "the key is of a login"
        # the way out, under the real family
        wire = Wire()
        real = OpenAICompletions(wire, tasks, clock)
        assert await said(registry(real, logins=logins), at, "fake/m") == "by no wire"
        assert wire.asked == ["POST http://nowhere/v1/chat/completions"]
