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


async def test_without_the_secret_that_it_is_to_ask_for_the_gateway_does_not_start(tmp_path: Path) -> None:
    program = Resident(tmp_path)
    program.config["gateway"]["auth"]["token"] = {"source": "store", "provider": "default", "id": "GATE_TOKEN"}
    program.write()
    code, out, err = await program.run("gateway", "run")
    assert code != 0
    assert "the gateway does not start without its secret: gateway.auth.token: store:default:GATE_TOKEN" in out + err
    assert "Traceback" not in out + err
    assert (await program.run("secrets", "set", "GATE_TOKEN", given=TOKEN.encode()))[0] == 0
    await program.start()
    try:
        async with program.client() as client:
            shown = await client.call("config.get")
            assert shown["config"]["gateway"]["auth"]["token"]["id"] == "GATE_TOKEN"
            assert TOKEN not in json.dumps(shown)
        code, out, _ = await program.run("health", "--json")
        assert code == 0, out
    finally:
        await program.stop()


async def test_the_store_is_moved_into_listed_and_told_by_methods(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        code, out, err = await program.run("secrets", "migrate", "--dry-run", "--json")
        moved = {row["path"]: row["name"] for row in json.loads(out)["moved"]}
        assert moved == {"gateway.auth.token": "GATEWAY_AUTH_TOKEN", "models.providers.fake.apiKey": "FAKE_API_KEY"}
        assert TOKEN in program.config_file.read_text()
        code, out, err = await program.run("secrets", "migrate")
        assert (code, err) == (0, "")
        assert TOKEN not in program.config_file.read_text() + out
        assert KEY not in program.config_file.read_text() + out
        code, out, _ = await program.run("secrets", "audit", "--check")
        assert (code, "garra.json.bak): the old text" in out) == (1, True)
        (program.state / "garra.json.bak").unlink()
        assert (await program.run("secrets", "audit", "--check"))[0] == 0
        await program.start()
        try:
            async with program.client() as client:
                assert (await client.say("hello"))["state"] == "final"
                assert model.requests[0].key == KEY
                listed = await client.call("secrets.store.list")
                assert [row["name"] for row in listed["entries"]] == ["FAKE_API_KEY", "GATEWAY_AUTH_TOKEN"]
                assert not leaks(json.dumps(listed))
                new = "sk-second-key-0a1b2c3d4e"
                stored = await client.call("secrets.store.set", {"name": "FAKE_API_KEY", "value": new})
                assert stored["reloaded"] is True
                assert new not in json.dumps(stored)
                await client.say("hello again")
                assert model.requests[-1].key == new
                wanted = {"commandName": "x", "targetIds": ["models.providers.*.apiKey"]}
                found = await client.call("secrets.resolve", wanted)
                assert [row["value"] for row in found["assignments"]] == [new]
                assert (await client.call("secrets.reload"))["warningCount"] == 0
            async with program.client(scopes=["operator.read", "operator.write"]) as client:
                for method in ("secrets.store.list", "secrets.reload"):
                    with pytest.raises(RuntimeError, match="missing scope"):
                        await client.call(method)
        finally:
            await program.stop()
