"""Known secrets, planted wherever they can be, are in nothing that the running program says, stores or sends."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import websockets

from garra.testing.model_server import Say, Use
from tests.e2e.resident import KEY, TOKEN, Client, Resident, StrictModel, strict_model

pytestmark = pytest.mark.e2e

PLANTED = {
    "env": "envsecret-4f1e9a7c2b",
    "variable": "varsecret-0b7d3c5a9e",
    "file": "filesecret-7a2c4e6f81",
    "exec": "execsecret-9d1b3f5a77",
    "store": "storesecret-2e4c6a8f13",
    "keyring": "ringsecret-5b7d9f1c24",
    "unused": "unusedsecret-8c6a4e2f35",
    "config": KEY,
}
RING = f"""
def get_password(service, name):
    return {PLANTED["keyring"]!r} if (service, name) == ("garra", "RING_KEY") else None
"""


def shown(secret: str) -> list[str]:
    """The secret as programs print it without meaning to hide it."""
    data = secret.encode()
    return [secret, base64.b64encode(data).decode().rstrip("="), data.hex()]


def planted(root: Path, model_url: str) -> Resident:
    program = Resident(root)
    (root / "lib").mkdir()
    (root / "lib" / "keyring.py").write_text(RING)
    program.env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root / "lib"), program.env.get("PYTHONPATH", ""))))
    program.env |= {"SPARE_API_KEY": PLANTED["env"], "NAMED": PLANTED["variable"]}
    own = root / "own.txt"
    own.write_text(PLANTED["file"] + "\n")
    own.chmod(0o600)
    give = root / "give"
    give.write_text(f"#!{os.path.realpath(sys.executable)}\nprint({PLANTED['exec']!r})\n")
    give.chmod(0o700)
    entries = {
        "STORE_KEY": {"kind": "secret", "value": PLANTED["store"]},
        "UNUSED_KEY": {"kind": "secret", "value": PLANTED["unused"]},
        "RING_KEY": {"kind": "secret", "keyring": True},
    }
    (program.state / "secrets.json").write_text(json.dumps({"version": 1, "entries": entries}))
    program.config["secrets"] = {
        "providers": {
            "own": {"source": "file", "path": str(own), "mode": "singleValue"},
            "give": {"source": "exec", "command": str(give), "jsonOnly": False},
        }
    }
    references: dict[str, Any] = {
        "a": "${NAMED}",
        "b": {"source": "file", "provider": "own", "id": "value"},
        "c": {"source": "exec", "provider": "give", "id": "value"},
        "d": {"source": "store", "provider": "default", "id": "STORE_KEY"},
        "e": {"source": "store", "provider": "default", "id": "RING_KEY"},
    }
    providers = program.config["models"]["providers"]
    providers["fake"]["baseUrl"] = f"{model_url}/v1"
    for name, reference in references.items():
        providers[name] = {**providers["fake"], "apiKey": reference}
    program.write()
    return program


def leaks(text: str) -> list[str]:
    return [name for name, secret in PLANTED.items() for form in shown(secret) if form in text]


async def told(client: Client) -> list[Any]:
    """What the gateway's methods tell of it all."""
    key = {"sessionKey": "agent:main:main"}
    listed = await client.call("models.list", {})
    return [
        await client.call("config.get"),
        await client.call("chat.history", key),
        await client.call("sessions.list"),
        await client.call("logs.tail"),
        await client.call("status"),
        await client.call("health"),
        await client.call("secrets.store.list"),
        listed,
    ]


async def commands(program: Resident) -> str:
    lines = [
        ("status", "--json"), ("config", "get", "models"), ("secrets", "list"), ("secrets", "audit", "--allow-exec"),
        ("secrets", "get", "STORE_KEY"), ("secrets", "get", "STORE_KEY", "--reveal"), ("messages", "list", "--json"),
        ("sessions", "history", "agent:main:main"), ("sessions", "export", "agent:main:main"), ("doctor",),
    ]  # fmt: skip
    said = await asyncio.gather(*(program.run(*line) for line in lines))
    return "".join(out + err for _code, out, err in said)


async def conversation(client: Client, model: StrictModel, program: Resident) -> None:
    words = ", ".join(form for secret in PLANTED.values() for form in shown(secret))
    (program.state / "workspace" / "notes.txt").write_text(words)
    (program.state / "workspace" / "AGENTS.md").write_text(f"# Rules\n\nThe keys: {words}\n")
    model.then(Say(f"You said {words}."))
    await client.say(f"My keys are {words}. Keep them.")
    model.then(Use("read", {"path": "notes.txt"}), Use("exec", {"command": "cat notes.txt; cat notes.txt | rev | rev"}))
    model.then(Say("done"))
    await client.say("What do my notes say?")


async def test_what_is_known_is_nowhere(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = planted(tmp_path, model.url)
        await program.start()
        try:
            async with program.client() as client:
                await conversation(client, model, program)
                answers, events = await told(client), client.events
            said = await commands(program)
        finally:
            await program.stop()
        bodies = [seen.raw.decode() for seen in model.requests]
        assert len(bodies) >= 4
        assert "The keys: " in bodies[0]
        assert [leaks(body) for body in bodies if leaks(body)] == []
        assert model.requests[0].key == KEY
        assert not leaks(json.dumps(events))
        assert [leaks(json.dumps(answer)) for answer in answers if leaks(json.dumps(answer))] == []
        assert not leaks(said), said
        assert not leaks((tmp_path / "gateway.log").read_text())
        for file in (*program.state.glob("agents/**/*.jsonl"), *program.state.glob("logs/*")):
            assert not leaks(file.read_text()), file
        assert "***" in json.dumps(answers[1])


async def test_a_token_that_was_changed_lets_nobody_in_any_more(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        await program.start()
        try:
            async with program.client() as client:
                assert await client.call("health")
                program.config["gateway"]["auth"]["token"] = "another-token-0123456789"
                program.write()
                with pytest.raises((websockets.ConnectionClosed, RuntimeError)):
                    async with asyncio.timeout(3):
                        while True:
                            await client.call("health")
                            await asyncio.sleep(0.05)
            with pytest.raises((websockets.ConnectionClosed, RuntimeError)):
                async with program.client(auth={"token": TOKEN}):
                    pass
        finally:
            await program.stop()
