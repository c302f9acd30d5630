"""What a provider's cache sees of the running program, and what its owner is shown of the window."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from garra.core import weights
from garra.core.pictures import read
from garra.testing.model_server import Fail, Seen
from tests.e2e.resident import Client, Resident, strict_model, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

PRUNES = {"contextPruning": {"ttl": "1h"}}


def settings(more: dict[str, Any] | None = None, **defaults: Any) -> dict[str, Any]:
    usual = {"model": {"primary": "fake/fake"}, "skipBootstrap": True}
    return {"agents": {"defaults": {**usual, **PRUNES, **defaults}}, **(more or {})}


def parts(seen: Seen) -> tuple[bytes, list[bytes], str]:
    """(system and tools, the history message by message, the tail) of a request."""
    body = seen.body
    system, *rest = body["messages"]
    tail = ""
    if rest and "OPENCLAW_INTERNAL_CONTEXT" in json.dumps(rest[-1]):
        tail = json.dumps(rest.pop())
    fixed = json.dumps([system, body["tools"]]).encode()
    return fixed, [json.dumps(each).encode() for each in rest], tail


def unmarked(value: Any) -> Any:
    """Without the marks that tell Anthropic's what to keep: they move on with the history."""
    if isinstance(value, dict):
        return {name: unmarked(each) for name, each in value.items() if name != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


def anthropic(seen: Seen) -> tuple[bytes, list[bytes], str]:
    """The same of a request to Anthropic's family: its history block by block."""
    body = unmarked(seen.body)
    blocks = [
        json.dumps([message["role"], block]).encode()
        for message in body["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else [message["content"]])
    ]
    tail = blocks.pop().decode() if b"OPENCLAW_INTERNAL_CONTEXT" in blocks[-1] else ""
    return json.dumps([body["system"], body["tools"]]).encode(), blocks, tail


def breaks(requests: list[Seen], parts: Callable[[Seen], tuple[bytes, list[bytes], str]] = parts) -> list[int]:
    """Which requests do not begin as the one before them ended."""
    found, before = [], None
    for number, seen in enumerate(requests):
        now = parts(seen)
        if before is not None and (now[0] != before[0] or now[1][: len(before[1])] != before[1]):
            found.append(number)
        before = now
    return found


async def talk(client: Client, program: Resident, turns: range) -> None:
    memory = program.state / "workspace" / "MEMORY.md"
    for number in turns:
        if number % 10 == 3:
            memory.write_text(f"# Memory\n\n- the number was {number}\n")
            diary = program.state / "workspace" / "memory" / "2026-12-01.md"
            diary.parent.mkdir(exist_ok=True)
            diary.write_text(f"- said {number}\n")
        text = f'tool:read {{"path": "MEMORY.md"}} {number}' if number % 3 == 0 else f"question {number}"
        assert (await client.say(text))["state"] == "final"


@pytest.mark.req("LOOP-11")
async def test_fifty_turns_with_tools_memory_edits_and_restarts_keep_the_prefix(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url, settings())
        for turns in (range(20), range(20, 35), range(35, 50)):
            await program.start()
            async with program.client() as client:
                await talk(client, program, turns)
            assert await program.stop() == 0
        assert not model.refused
        assert len(model.requests) == 50 + 17
        assert breaks(model.requests) == []
        last = parts(model.requests[-1])
        assert b"the number was" not in last[0]
        assert "the number was 43" in last[2]


@pytest.mark.req("LOOP-11")
async def test_the_prefix_holds_in_the_other_family_too(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url, settings())
        provider = program.config["models"]["providers"]["fake"]
        provider |= {"api": "anthropic-messages", "baseUrl": model.url}
        program.write()
        for turns in (range(8), range(8, 16)):
            await program.start()
            async with program.client() as client:
                await talk(client, program, turns)
            assert await program.stop() == 0
        assert len(model.requests) == 16 + 6
        assert breaks(model.requests, anthropic) == []
        assert "the number was 13" in anthropic(model.requests[-1])[2]


def failing(program: Resident) -> None:
    """A context engine that raises."""
    folder = program.state / "extensions" / "toy"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    manifest = 'id = "toy"\nkind = "context"\n[[part]]\nname = "toy"\nmodule = "toy:make"\n'
    (folder / "manifest.toml").write_text(manifest)
    (folder / "toy.py").write_text(
        "from garra.testing.context import ToyEngine\n\n\n"
        "def make(settings):\n    return ToyEngine(fails=set(settings.get('fails', ())))\n"
    )


def toy(*fails: str) -> dict[str, Any]:
    entry = {"enabled": True, "config": {"fails": list(fails)}}
    return settings({"plugins": {"slots": {"contextEngine": "toy"}, "entries": {"toy": entry}}})


@pytest.mark.req("SESS-19")
async def test_an_engine_adds_behind_the_history_and_is_set_aside_when_it_fails(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url, toy())
        failing(program)
        await program.start()
        async with program.client() as client:
            for number in range(3):
                await client.say(f"question {number}")
        assert await program.stop() == 0
        assert [parts(seen)[2].count("## Toy") for seen in model.requests] == [1, 1, 1]
        assert breaks(model.requests) == []
        program.config = {**program.config, **toy("assemble")}
        program.write()
        await program.start()
        async with program.client() as client:
            for number in range(5):
                session = "agent:main:other" if number % 2 else "agent:main:main"
                assert words(await client.say(f"more {number}", session)).startswith("pong")
        assert await program.stop() == 0
        assert program.log().count("context engine toy is set aside") == 1
        assert all("## Toy" not in parts(seen)[2] for seen in model.requests[3:])
        assert not model.refused


@pytest.mark.req("SESS-14")
async def test_old_results_are_sent_in_brief_after_a_pause_and_stay_so(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url, settings(contextPruning={"ttl": "1ms"}))
        program.config["models"]["providers"]["fake"]["models"][0] |= {"contextWindow": 24_000, "maxTokens": 1_000}
        program.write()
        await program.start()
        (program.state / "workspace").mkdir(exist_ok=True)
        (program.state / "workspace" / "long.txt").write_text("".join(f"line {n} {'x' * 60}\n" for n in range(300)))
        async with program.client() as client:
            for number in range(3):
                await client.say(f'tool:read {{"path": "long.txt"}} {number}')
            for number in range(4):
                await client.say(f"and now {number}")
        first, last = parts(model.requests[1])[1], parts(model.requests[-1])[1]
        assert max(map(len, first)) > 15_000
        assert [each for each in last if b"[Trimmed: the first 1,500" in each]
        assert await program.stop() == 0
        before = last[: len(last) - 1]
        await program.start()
        async with program.client() as client:
            await client.say("again")
            stored = await client.call("chat.history", {"sessionKey": "agent:main:main", "limit": 200})
        assert parts(model.requests[-1])[1][: len(before)] == before
        assert "[Trimmed: the first" not in json.dumps(stored)
        assert await program.stop() == 0
        assert not model.refused


@pytest.mark.req("SESS-20")
async def test_active_memory_tells_what_the_workspace_remembers(tmp_path: Path) -> None:
    on = {"plugins": {"entries": {"active-memory": {"enabled": True, "config": {"mode": "always"}}}}}
    async with strict_model() as model:
        program = Resident(tmp_path, model.url, settings(on))
        workspace = program.state / "workspace"
        (workspace / "memory").mkdir(parents=True)
        (workspace / "memory" / "2026-05-02.md").write_text("# 2026-05-02\n\n- Petronella is allergic to walnuts.\n")
        for day in range(10, 22):
            (workspace / "memory" / f"2026-05-{day}.md").write_text(f"# 2026-05-{day}\n\n- The ferry left at {day}.\n")
        await program.start()
        async with program.client() as client:
            await client.say("Bake a cake for Petronella, please")
        assert await program.stop() == 0
        fixed, _, tail = parts(model.requests[-1])
        assert "allergic to walnuts" in tail
        assert "memory/2026-05-02.md#L" in tail
        assert b"walnuts" not in fixed


async def test_the_owner_is_shown_what_fills_the_window(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url, settings())
        await program.start()
        async with program.client() as client:
            await client.say('tool:read {"path": "MEMORY.md"}')
            told = words(await client.say("/context detail"))
            found = await client.call("sessions.context", {"key": "main"})
        assert "Injected workspace files" in told
        assert "- Results of tools: 1," in told
        assert found["history"]["byRole"]["toolResults"]["count"] == 1
        body = model.requests[-1].body
        assert found["systemPrompt"]["chars"] == len(body["messages"][0]["content"])
        assert sum(row["chars"] for row in found["sections"]) <= found["systemPrompt"]["chars"]
        assert {row["name"] for row in found["tools"]["entries"]} == {
            each["function"]["name"] for each in body["tools"]
        }
        code, out, err = await program.run("sessions", "context", "main")
        assert (code, err) == (0, "")
        assert out.splitlines() == words_of(found)
        assert await program.stop() == 0
        code, out, err = await program.run("sessions", "context", "main", "--json")
        assert code == 0, err
        assert json.loads(out)["history"] == found["history"]
        assert len(model.requests) == 2


def words_of(report: dict[str, Any]) -> list[str]:
    return weights.words(report).splitlines()


async def test_a_picture_that_is_refused_is_not_sent_again(tmp_path: Path) -> None:
    picture = {"mimeType": "image/png", "fileName": "a.png", "content": PICTURE}
    async with strict_model() as model:
        program = Resident(tmp_path, model.url, settings())
        program.config["models"]["providers"]["fake"]["models"][0] |= {"input": ["text", "image"]}
        program.write()
        await program.start()
        model.then(Fail(400, "image exceeds the maximum size"))
        async with program.client() as client:
            assert words(await client.say("look at this", attachments=[picture])).startswith("pong")
            assert words(await client.say("and now")).startswith("pong")
            assert words(await client.say("and then")).startswith("pong")
        assert await program.stop() == 0
        pictures = [seen.raw.count(PICTURE.encode()) for seen in model.requests]
        assert pictures == [1, 0, 0, 0]
        assert all(b"[image omitted" in seen.raw for seen in model.requests[1:])


@pytest.mark.skipif(find_spec("PIL") is None, reason="Pillow is not installed")
async def test_a_picture_that_is_too_large_is_made_smaller_before_it_is_kept(tmp_path: Path) -> None:
    picture = {"mimeType": "image/png", "fileName": "a.png", "content": base64.b64encode(png(5_000, 2_500)).decode()}
    async with strict_model() as model:
        program = Resident(tmp_path, model.url, settings())
        program.config["models"]["providers"]["fake"]["models"][0] |= {"input": ["text", "image"]}
        program.write()
        await program.start()
        async with program.client() as client:
            assert words(await client.say("look at this", attachments=[picture])).startswith("pong")
        assert await program.stop() == 0
        sent = model.requests[0].body["messages"][-1]["content"][-1]["image_url"]["url"]
        found = read(base64.b64decode(sent.partition(",")[2]))
        assert (found.width, found.height) == (1_200, 600)


def png(width: int, height: int) -> bytes:
    """All white."""
    rows = zlib.compress((b"\0" + b"\xff" * ((width + 7) // 8)) * height)
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", rows), (b"IEND", b""))
    made = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(made)


PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
