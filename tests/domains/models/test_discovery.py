"""Which models servers say they have: asked now and then, kept, and who counts above them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from garra.core import foundations
from garra.domains.models.discovery import FRESH_MS, Discovery
from garra.domains.models.registry import Models
from garra.io.http import GuardedHttp
from garra.testing.clock import ManualClock
from tests.core.test_catalog import ROUTER
from tests.core.test_foundations import MODELS, PROFILES
from tests.domains.models.desk import Desk, desk


@dataclass
class Lists:
    """A server that lists models, as its `pages` have them by path; 404 for others. `asked` is what came."""

    pages: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    async def __aenter__(self) -> Lists:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.rstrip().split("\r\n")
        path = first.split(" ")[1]
        self.asked.append((path, {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}))
        page = self.pages.get(path)
        body = page.encode() if isinstance(page, str) else json.dumps(page).encode()
        status = 404 if page is None else 200
        writer.write(f"HTTP/1.1 {status} x\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@dataclass
class Stand:
    desk: Desk
    lists: Lists
    clock: ManualClock
    http: GuardedHttp
    file: Path

    @property
    def models(self) -> Models:
        return self.desk.models

    def discovery(self) -> Discovery:
        return Discovery(self.models, self.http, self.clock, self.file)

    def configure(self, **providers: dict[str, Any]) -> None:
        self.desk.configure({"models": {"providers": providers}})


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Stand]:
    async with desk() as own, Lists() as lists:
        yield Stand(own, lists, ManualClock(), own.http, tmp_path / "models" / "catalog.json")


def router(at: Stand) -> None:
    at.lists.pages = {"/v1/catalog": ROUTER, "/v1/usage": {"budget": {"limitMicros": 10_000_000}}}
    at.configure(clawrouter={"baseUrl": at.lists.url, "apiKey": "router-key"})


@pytest.mark.req("MODEL-21")
async def test_a_routers_catalog_is_asked_for_once_a_minute(at: Stand) -> None:
    router(at)
    discovery = at.discovery()
    await asyncio.gather(*(discovery.ready("clawrouter/openai/gpt-5.5") for _ in range(5)))
    assert at.lists.paths == ["/v1/catalog", "/v1/usage"]
    assert at.lists.asked[0][1]["authorization"] == "Bearer router-key"
    assert discovery.budget("clawrouter") == {"limit": 10.0, "spent": 0.0}
    model = at.models.resolve("clawrouter/anthropic/claude-x")
    assert (model.api, model.base_url) == ("anthropic-messages", f"{at.lists.url}/v1/native/anthropic")
    await at.clock.advance(FRESH_MS / 1_000 - 1)
    await discovery.ready("clawrouter/openai/gpt-5.5")
    assert len(at.lists.paths) == 2
    await at.clock.advance(2)
    await discovery.ready("clawrouter/openai/gpt-5.5")
    assert len(at.lists.paths) == 4


async def test_another_key_is_asked_for_anew(at: Stand) -> None:
    router(at)
    discovery = at.discovery()
    await discovery.ready("clawrouter/x")
    at.configure(clawrouter={"baseUrl": at.lists.url, "apiKey": "another"})
    await discovery.ready("clawrouter/x")
    assert at.lists.paths.count("/v1/catalog") == 2
    at.lists.pages["/v1/catalog"] = {"providers": []}
    assert (await discovery.ask("clawrouter", force=True)).count == 0
    assert "clawrouter" not in {row.provider for row in at.models.rows()}


async def test_what_was_found_outlives_the_process(at: Stand) -> None:
    router(at)
    await at.discovery().ready("clawrouter/x")
    assert "router-key" not in await asyncio.to_thread(at.file.read_text)
    assert (await asyncio.to_thread(at.file.stat)).st_mode & 0o777 == 0o600
    at.models.found({})
    again = at.discovery()
    await again.load()
    assert at.models.resolve("clawrouter/google/gemini-x").api == "google-generative-ai"
    assert again.age_ms("clawrouter") == 0
    assert again.age_ms("other") is None
    at.configure(clawrouter={"baseUrl": "http://127.0.0.1:9", "apiKey": "router-key"})
    at.models.found({})
    await at.discovery().load()
    assert at.models.resolve("clawrouter/google/gemini-x").api == "openai-completions"


async def test_a_router_that_is_down_stops_nobody(at: Stand, caplog: pytest.LogCaptureFixture) -> None:
    at.configure(clawrouter={"baseUrl": at.lists.url, "apiKey": "k"})
    await at.discovery().ready("clawrouter/x")
    assert "answered 404" in caplog.text
    await at.discovery().ready("openai/x")


@pytest.mark.req("MODEL-04")
async def test_field_by_field_the_owner_the_box_the_server(at: Stand) -> None:
    rows = [{"id": "gpt-6-sol", "name": "Server's", "context_length": 7, "max_output_tokens": 8},
            {"id": "new", "context_length": 9, "supported_parameters": ["reasoning"]}]  # fmt: skip
    at.lists.pages = {"/models": {"data": rows}}
    own = {"id": "new", "name": "Mine", "cost": {"input": 3.0}}
    at.configure(openai={"baseUrl": at.lists.url, "apiKey": "k", "models": [own]})
    found = await at.discovery().refresh("openai")
    assert [(each.provider, each.count) for each in found] == [("openai", 2)]
    boxed, mine = at.models.resolve("openai/gpt-6-sol"), at.models.resolve("openai/new")
    assert (boxed.name, boxed.context_window) == ("GPT-6 Sol", 1_050_000)
    assert (mine.name, mine.context_window, mine.reasoning, mine.cost.input) == ("Mine", 9, True, 3.0)


async def test_what_is_asked_and_what_is_said_of_it(at: Stand) -> None:
    at.lists.pages = {"/v1/models?limit=1000": {"data": [{"id": "claude-x"}]}, "/models": "no JSON"}
    at.configure(
        anthropic={"baseUrl": at.lists.url, "apiKey": "k"},
        broken={"baseUrl": at.lists.url, "models": []},
        groq={"baseUrl": f"{at.lists.url}/none", "apiKey": "${GROQ}"},
    )
    found = {each.provider: each for each in await at.discovery().refresh() if each.provider in
             ("anthropic", "broken", "groq", "openai")}  # fmt: skip
    assert (found["anthropic"].count, found["anthropic"].problem) == (1, "")
    assert "no JSON" in found["broken"].problem
    assert "not set" in found["groq"].problem
    assert "openai" not in found
    headers = dict(at.lists.asked)["/v1/models?limit=1000"]
    assert (headers["x-api-key"], "authorization" in headers) == ("k", False)
    at.lists.pages["/models"] = {"data": []}
    assert (await at.discovery().ask("broken")).problem == "it lists no models"


async def test_a_file_that_is_broken_is_as_if_there_were_none(at: Stand) -> None:
    await asyncio.to_thread(at.file.parent.mkdir)
    for text in ("{", "[]", '{"providers": 3}', '{"providers": {"openai": {"rows": 3}}}'):
        await asyncio.to_thread(at.file.write_text, text)
        read = at.discovery()
        await read.load()
        assert read.age_ms("openai") is None


async def test_bedrocks_two_lists_are_read_with_its_key(at: Stand) -> None:
    first, second = foundations.LISTS
    at.lists.pages = {first: MODELS, second: PROFILES}
    at.desk.configure({"models": {"providers": {"amazon-bedrock": {"baseUrl": at.lists.url}}}})
    found = at.discovery()
    asked = await found.ask("amazon-bedrock")
    assert "AWS_BEARER_TOKEN_BEDROCK" in asked.problem
    assert at.lists.asked == []
    at.desk.env["AWS_BEARER_TOKEN_BEDROCK"] = "bedrock-key"
    assert (await found.ask("amazon-bedrock")).count == 4
    assert at.lists.paths == [first, second]
    assert {headers["authorization"] for _, headers in at.lists.asked} == {"Bearer bedrock-key"}
    model = at.desk.models.resolve("bedrock/us.p.by-profile")
    assert (model.name, model.input, model.api) == ("US A", ("text",), "bedrock-converse-stream")
    del at.lists.pages[second]
    await at.clock.advance(FRESH_MS / 1_000 + 1)
    assert "404" in (await found.ask("amazon-bedrock")).problem
    assert at.desk.models.resolve("bedrock/us.p.by-profile").name == "US A", "what was known stays"
