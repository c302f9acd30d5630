"""A skill from an archive: shown, installed, read, lent its key, taken away; hostile archives refused."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say, Use
from tests.domains.skills.making import FILES, zipped
from tests.e2e.resident import Resident, StrictModel, resident, strict_model

pytestmark = pytest.mark.e2e

VALUE = "tripsecret-7c1e5a9b3d"
SKILL = b"""---
name: trip-kit
description: Plans trips by rail.
metadata: {"openclaw": {"requires": {"bins": ["trip"], "env": ["TRIP_KEY"]}, "primaryEnv": "TRIP_KEY"}}
---
Run `trip plan`.
"""


def system(model: StrictModel) -> str:
    """What the last request began with."""
    return str(model.requests[-1].body["messages"][0]["content"])


def results(model: StrictModel) -> list[str]:
    """What tools answered, as the last request has it."""
    return [str(each["content"]) for each in model.requests[-1].body["messages"] if each["role"] == "tool"]


def program(root: Path) -> dict[str, Any]:
    """The settings of an owner who lets commands run on the machine, where the skill's program is."""
    (root / "bin").mkdir(parents=True)
    trip = root / "bin" / "trip"
    trip.write_text('#!/bin/sh\nprintf %s "$TRIP_KEY" | sha256sum\n')
    trip.chmod(0o755)
    return {
        "tools": {"exec": {"host": "gateway", "security": "full", "ask": "off", "pathPrepend": [str(root / "bin")]}},
        "skills": {"entries": {"trip-kit": {"apiKey": VALUE}}},
        "agents": {"defaults": {"model": {"primary": "fake/fake"}, "sandbox": {"mode": "off"}}},
    }


async def test_from_an_archive_to_the_prompt_and_away_again(tmp_path: Path) -> None:
    archive = tmp_path / "trip.zip"
    archive.write_bytes(zipped({**FILES, "SKILL.md": SKILL}))
    settings = program(tmp_path)
    async with strict_model() as model, resident(tmp_path, model.url, settings) as house, house.client() as client:
        house.env["PATH"] = f"{tmp_path / 'bin'}:{house.env['PATH']}"
        code, out, err = await house.run("skills", "install", str(archive))
        assert (code, "TRIP_KEY" in out, "--yes" in err) == (1, True, True)
        code, out, _ = await house.run("skills", "install", str(archive), "--yes", "--json")
        assert (code, json.loads(out)["installed"]) == (0, True)
        folder = house.state / "skills" / "trip-kit"
        assert (folder / "SKILL.md").read_bytes() == SKILL

        found = (await client.call("skills.status"))["skills"]
        assert [(row["name"], row["missing"]["env"], row["installed"]["origin"]) for row in found] == [
            ("trip-kit", [], str(archive))
        ]

        model.then(Use("exec", {"command": "trip plan"}), Say("no"))
        await client.say("How is it before?")
        model.then(Use("read", {"path": f"{folder}/SKILL.md"}), Use("exec", {"command": "trip plan"}))
        model.then(Use("write", {"path": "memory/trip.md", "content": "by the skill"}), Say("planned"))
        await client.say("Plan a trip.")
        said = "\n".join(results(model))
        assert hashlib.sha256(b"").hexdigest() in said, "before it was read"
        assert hashlib.sha256(VALUE.encode()).hexdigest() in said, "once it was read"
        assert all(VALUE.encode() not in seen.raw for seen in model.requests)

        (folder / "scripts" / "go.sh").write_text("mine")
        _, out, _ = await house.run("skills", "check")
        assert "changed since install (changed: scripts/go.sh)" in out
        code, out, _ = await house.run("skills", "remove", "trip-kit", "--yes")
        assert (code, folder.exists()) == (0, False)
        assert "scripts/go.sh) is in" in out
        assert "memory/trip.md" in out
        model.then(Say("gone"))
        await client.say("And now?", session="agent:main:after")
        assert "trip-kit" not in system(model)


async def test_the_next_turn_lists_it(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as house, house.client() as client:
        kit = tmp_path / "kit"
        kit.mkdir()
        (kit / "SKILL.md").write_text("---\nname: rail\ndescription: Plans trips by rail.\n---\nDo.\n")
        await client.say("hi", session="agent:main:one")
        assert "Plans trips by rail." not in system(model)
        offer = await client.call("skills.install", {"origin": str(kit)})
        assert (offer["ok"], offer["needsConfirm"]) == (False, True)
        (kit / "SKILL.md").write_text("---\nname: rail\ndescription: Another one.\n---\nDo evil.\n")
        with pytest.raises(RuntimeError, match="not what was shown"):
            await client.call("skills.install", {"origin": str(kit), "confirm": offer["offer"]["seal"]})
        offer = await client.call("skills.install", {"origin": str(kit)})
        done = await client.call("skills.install", {"origin": str(kit), "confirm": offer["offer"]["seal"]})
        assert done["ok"] is True
        await client.say("hi", session="agent:main:two")
        assert "rail: Another one." in system(model)
        (kit / "more.md").write_text("more")
        told = await client.call("skills.update", {"name": "rail"})
        assert told["changes"]["added"] == ["more.md"]
        told = await client.call("skills.update", {"name": "rail", "confirm": told["offer"]["seal"]})
        assert told["message"] == "updated"
        assert (await client.call("skills.detail", {"name": "rail"}))["files"].keys() == {"SKILL.md", "more.md"}
        set_ = await client.call("skills.update", {"skillKey": "rail", "enabled": False, "apiKey": VALUE})
        assert set_["config"] == {"enabled": False, "apiKey": True, "env": []}
        assert VALUE not in json.dumps(await client.call("config.get"))
        assert not (await client.call("skills.status"))["skills"][0]["eligible"]
        assert (await client.call("skills.remove", {"name": "rail"}))["ok"] is True
        assert (await client.call("skills.status"))["skills"] == []
        assert (await client.call("skills.search", {"query": "x"})) == {"results": []}


@pytest.mark.needs("bwrap")
async def test_an_installed_script_has_its_key_in_the_sandbox_and_nothing_else_has(tmp_path: Path) -> None:
    settings = {"skills": {"entries": {"kit": {"env": {"KIT_KEY": VALUE}}}}}
    script = b'#!/bin/sh\nprintf %s "$KIT_KEY" | sha256sum\n'
    (tmp_path / "kit" / "scripts").mkdir(parents=True)
    (tmp_path / "kit" / "SKILL.md").write_text("---\nname: kit\ndescription: d\n---\nRun scripts/plan-trip.\n")
    (tmp_path / "kit" / "scripts" / "plan-trip").write_bytes(script)
    async with strict_model() as model, resident(tmp_path, model.url, settings) as house, house.client() as client:
        assert (await house.run("skills", "install", "kit", "--yes"))[0] == 0
        folder = house.state / "skills" / "kit"
        model.then(Use("read", {"path": f"{folder}/SKILL.md"}), Use("exec", {"command": f"{folder}/scripts/plan-trip"}))
        model.then(Use("exec", {"command": f"{folder}/scripts/plan-trip; env"}), Say("done"))
        await client.say("Run it.")
        _, alone, beside = results(model)
        assert hashlib.sha256(VALUE.encode()).hexdigest() in alone
        assert hashlib.sha256(b"").hexdigest() in beside
        assert "KIT_KEY" not in beside


HOSTILE = {
    "up.zip": zipped({**FILES, "../../evil": b"x"}),
    "absolute.zip": zipped({**FILES, "/tmp/evil": b"x"}),
    "link.zip": zipped({**FILES, "link": b"/etc/passwd"}, {"link": 0o120777}),
    "bomb.zip": zipped({**FILES, "big": b"\0" * (200 << 20)}),
    "none.zip": b"no archive",
}


async def test_hostile_archives_are_refused_in_one_line(tmp_path: Path) -> None:
    house = Resident(tmp_path)
    house.write()
    for name, data in HOSTILE.items():
        await asyncio.to_thread((tmp_path / name).write_bytes, data)
    ran = await asyncio.gather(*(house.run("skills", "install", name, "--yes") for name in HOSTILE))
    for (code, out, err), name in zip(ran, HOSTILE, strict=True):
        assert (code, out) == (1, ""), name
        assert err.startswith("garra: "), err
        assert err.count("\n") == 1, err
    assert not (house.state / "skills").exists()
    assert not (tmp_path.parent / "evil").exists()


async def serve(data: bytes) -> asyncio.Server:
    """A server that answers everything with `data`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(data) + data)
        await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


async def test_from_an_address_only_where_the_owner_lets_it_be_reached_and_pinned(tmp_path: Path) -> None:
    data = zipped({**FILES, "SKILL.md": SKILL})
    house = Resident(tmp_path)
    async with await serve(data) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/trip.zip"
        pin = ("--sha256", hashlib.sha256(data).hexdigest())
        house.write()
        code, _, err = await house.run("skills", "install", url, *pin, "--yes")
        assert (code, "not a public address" in err) == (1, True)
        house.config["tools"] = {"web": {"fetch": {"ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}}}}
        house.write()
        for more, why in (((), "--sha256"), (("--sha256", "0" * 64), "is not what it should be")):
            code, _, err = await house.run("skills", "install", url, *more, "--yes")
            assert (code, why in err) == (1, True)
        assert not (house.state / "skills").exists()
        code, out, _ = await house.run("skills", "install", url, *pin, "--yes", "--json")
        assert (code, json.loads(out)["archiveSha256"]) == (0, pin[1])
        assert (house.state / "skills" / "trip-kit" / "SKILL.md").read_bytes() == SKILL


async def test_an_agent_s_command_installs_nothing(tmp_path: Path) -> None:
    house = Resident(tmp_path)
    house.write()
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "SKILL.md").write_text("x")
    code, _, err = await house.run("skills", "install", "kit", "--yes", env={"GARRA_SHELL": "exec"})
    assert (code, "by the owner" in err) == (1, True)
