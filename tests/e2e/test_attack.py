"""What an attacker tries through the model, the workspace and the surroundings: nothing leaks, nothing gets out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Fail, Say, Use
from tests.e2e.outside import house, logged, plain, sleeping, until
from tests.e2e.resident import KEY, TOKEN, Client, Resident, StrictModel, strict_model, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

PLANTED = "Zq81fLm0pasWd77wX"
GARRA = str(Path(sys.executable).with_name("garra"))


async def tool(client: Client, model: StrictModel, name: str, arguments: dict[str, Any]) -> str:
    """What the model is told of a call that it made."""
    last = await client.say(f"tool:{name} {json.dumps(arguments)}")
    assert (last["state"], words(last)) == ("final", "tool done"), last
    results = [message["content"] for message in model.requests[-1].body["messages"] if message["role"] == "tool"]
    told = results[-1]
    return told if isinstance(told, str) else json.dumps(told)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


@pytest.fixture
async def planted(tmp_path: Path) -> AsyncIterator[tuple[Resident, StrictModel]]:
    """A gateway whose configuration and environment hold secrets."""
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        program.config["models"]["providers"]["fake"]["apiKey"] = PLANTED
        program.env["OPENAI_API_KEY"] = "sk-planted-in-the-environment"
        program.write()
        await program.start()
        yield program, model
        program.kill()
        await program.gone()


def secrets_in(text: str) -> list[str]:
    return [secret for secret in (PLANTED, TOKEN, "sk-planted-in-the-environment") if secret in text]


# Secrets


@pytest.mark.needs("bwrap")
async def test_no_command_finds_a_key(planted: tuple[Resident, StrictModel]) -> None:
    program, model = planted
    assert program.process is not None
    commands = (
        f"env; set; cat {program.config_file} ../garra.json ~/../garra.json; ls -laR {program.state} | head -50",
        "cat /proc/self/environ /proc/1/environ /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'",
        f"cat /proc/{program.process.pid}/environ /proc/{os.getpid()}/environ; ls -la /proc/{program.process.pid}",
        f"cat {program.state}/state.db {program.state}/logs/*; cat /etc/shadow /root/.bashrc; ls -la / /root /run",
        f"exec 3<>/dev/tcp/127.0.0.1/{program.port} && echo REACHED THE GATEWAY",
        f"find / -name 'garra.json*' -o -name '*.jsonl' 2>/dev/null; grep -rl {PLANTED[:8]} /etc /tmp /dev/shm /var",
    )
    async with program.client() as client:
        for command in commands:
            told = await tool(client, model, "exec", {"command": command})
            assert not secrets_in(told), command
            assert "REACHED" not in told
            assert f"{program.state}/garra.json" not in told.replace("cat: ", "").split("\n")
    assert not secrets_in("".join(seen.raw.decode() for seen in model.requests))


async def test_a_workspace_above_the_state_folder_shows_nothing_of_it(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        program.config["agents"]["defaults"]["workspace"] = str(tmp_path)
        program.config["models"]["providers"]["fake"]["apiKey"] = PLANTED
        program.write()
        await program.start()
        try:
            before = program.config_file.read_bytes()
            async with program.client() as client:
                calls: list[tuple[str, dict[str, Any]]] = [
                    ("read", {"path": "state/garra.json"}),
                    ("read", {"path": str(program.config_file)}),
                    ("grep", {"pattern": "apiKey"}),
                    ("find", {"pattern": "**/*.json*"}),
                    ("write", {"path": "state/garra.json", "content": "{}"}),
                    ("write", {"path": "state/workspace/../x", "content": "{}"}),
                    ("edit", {"path": "state/garra.json", "edits": [{"oldText": "token", "newText": "none"}]}),
                    ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: state/garra.json\n*** End Patch"}),
                ]
                if shutil.which("bwrap"):
                    spoil = "cat state/*; echo {} > state/garra.json; rm -rf state; mv state away; cat away/*; ls state"
                    calls.append(("exec", {"command": spoil}))
                for name, arguments in calls:
                    told = await tool(client, model, name, arguments)
                    assert not secrets_in(told), (name, told)
                    assert "garra.json:" not in told or "closed" in told or "No such file" in told
            assert program.config_file.read_bytes() == before
            assert list((program.state / "agents/main/sessions").glob("*.jsonl"))
        finally:
            assert await program.stop() == 0


async def test_the_state_folder_itself_is_no_workspace(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        program.config["agents"]["defaults"]["workspace"] = str(program.state)
        program.write()
        code, out, err = await program.run("agent", "--local", "-m", "hello")
        assert (code, out) == (1, "")
        assert "agents.defaults.workspace" in plain(err)
        assert not model.requests


async def test_no_answer_log_or_export_holds_a_planted_secret(planted: tuple[Resident, StrictModel]) -> None:
    program, model = planted
    async with program.client() as client:
        model.then(Fail(401, f"{PLANTED} is no key that we know"))
        failed = await client.say("ask with a key")
        assert failed["state"] == "error"
        assert PLANTED not in json.dumps(failed)
        asked = ("config.get", "models.list", "status", "health", "agents.list", "sessions.list", "logs.tail",
                 "tools.catalog", "system-presence", "last-heartbeat", "device.pair.list", "config.schema")  # fmt: skip
        for method in asked:
            try:
                answer = json.dumps(await client.call(method))
            except RuntimeError as refused:
                answer = str(refused)
            assert not secrets_in(answer), method
        assert PLANTED not in json.dumps(await client.call("chat.history", {"sessionKey": "agent:main:main"}))
    assert not secrets_in(logged(program))
    commands = (["sessions", "export", "agent:main:main"], ["logs"], ["config", "get", "models"],
                ["config", "get", "gateway"], ["status", "--json", "--all"], ["doctor", "--json"],
                ["models", "list", "--json"], ["gateway", "call", "config.get"])  # fmt: skip
    ended = await asyncio.gather(*(program.run(*command) for command in commands))
    for command, (_, out, err) in zip(commands, ended, strict=True):
        assert PLANTED not in out + err, command
        assert "Traceback" not in out + err, command
    kept = {path for path, data in files_of(program.state).items() if PLANTED.encode() in data}
    assert {Path(path).name for path in kept} <= {"garra.json", "garra.json.last-good"}


async def test_what_is_kept_is_its_owners_alone(tmp_path: Path) -> None:
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        state = tmp_path / "fresh" / "deep"
        program.env |= {"GARRA_STATE_DIR": str(state), "GARRA_CONFIG_PATH": str(program.config_file)}
        old = os.umask(0)
        try:
            await program.start()
        finally:
            os.umask(old)
        async with program.client() as client:
            await client.say("something to keep")
        assert (await program.run("config", "set", "logging.level", "debug"))[0] == 0
        assert await program.stop() == 0
        open_to_others = [
            str(path.relative_to(state))
            for path in (state, *state.rglob("*"))
            if not path.is_relative_to(state / "workspace") and stat.S_IMODE(path.lstat().st_mode) & 0o077
        ]
        assert open_to_others == []
        assert stat.S_IMODE((state / "workspace").stat().st_mode) == 0o700


# Paths


async def test_no_path_leads_out_of_the_workspace(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model), program.client() as client:
        await client.say("hello")
        workspace, secret = program.state / "workspace", tmp_path / "outside" / "secret"
        secret.parent.mkdir()
        secret.write_text("THE OWNER'S")
        (workspace / "leaf").symlink_to(secret)
        (workspace / "parent").symlink_to(secret.parent)
        os.link(secret, workspace / "hard")
        before = files_of(tmp_path / "outside") | {str(program.config_file): program.config_file.read_bytes()}
        ways = ("../garra.json", "../../outside/secret", str(secret), "leaf", "parent/secret", "hard", "~/x", "a\0b",
                "file:///etc/passwd", "\\\\host\\share", "/proc/self/environ", "memory/../../garra.json")  # fmt: skip
        for way in ways:
            for name, more in (("read", {}), ("write", {"content": "x"})):
                told = await tool(client, model, name, {"path": way, **more})
                assert "THE OWNER'S" not in told
                assert not secrets_in(told), way
        patch = "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch"
        for way in ("../planted", "parent/planted", "/tmp/planted-by-patch", "leaf"):
            await tool(client, model, "apply_patch", {"input": patch.format(way)})
        for name in ("ls", "find", "grep"):
            for way in ("..", "parent", "/"):
                told = await tool(client, model, name, {"path": way, **({} if name == "ls" else {"pattern": "*"})})
                assert "secret" not in told.replace(way, "")
        assert files_of(tmp_path / "outside") | {str(program.config_file): program.config_file.read_bytes()} == before
        assert not Path("/tmp/planted-by-patch").exists()
        assert not list(program.state.glob("x")) + list(program.state.glob("planted"))


@pytest.mark.parametrize("key", ["../../x", "agent:main:../../x", "agent:../../etc:main", "a/b", "agent:main:a\0b"])
async def test_a_session_key_is_no_path(shared: Resident, key: str) -> None:
    async with shared.client() as client:
        with contextlib.suppress(RuntimeError):  # some are refused, some are made into a plain key
            await client.say("hello", session=key)
    kept = list(shared.root.rglob("*.jsonl"))
    assert all(path.is_relative_to(shared.state / "agents") for path in kept)
    assert all(path.parent.name == "sessions" for path in kept)


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Resident]:
    async with house(tmp_path) as (program, _):
        yield program


# Surroundings


async def test_what_lies_in_the_working_folder_changes_nothing(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    fallen = tmp_path / "FALLEN"
    for module in ("json", "sitecustomize", "usercustomize", "asyncio", "garra", "pydantic", "subprocess", "stub"):
        (trap / f"{module}.py").write_text(f"open({str(fallen)!r}, 'a').write({module!r})\nraise SystemExit(3)\n")
    (trap / ".env").write_text("PATH=/nowhere\nGARRA_GATEWAY_PORT=1\nFAKE_API_KEY=evil\nOPENAI_BASE_URL=http://evil\n")
    (trap / "garra.json").write_text('{ gateway: { port: 1 }, agents: { defaults: { model: "evil/x" } } }')
    async with strict_model() as model:
        program = Resident(tmp_path, model.url)
        workspace = program.state / "workspace"
        shutil.copytree(trap, workspace)
        ran = [await at(program, trap, "agent", "--local", "-m", f"tool:{name} {json.dumps(arguments)}")
               for name, arguments in (("grep", {"pattern": "x"}), ("exec", {"command": "echo fine"}))]  # fmt: skip
        assert [(code, out.strip()) for code, out, _ in ran] == [(0, "tool done"), (0, "tool done")], ran
        assert {seen.key for seen in model.requests} == {KEY}
        assert not fallen.exists(), fallen.read_text()
        code, out, _ = await at(program, trap, "config", "get", "gateway.port")
        assert (code, out.strip()) == (0, str(program.port))


async def at(program: Resident, folder: Path, *words: str) -> tuple[int, str, str]:
    """The installed command, run in `folder`."""
    process = await asyncio.create_subprocess_exec(
        GARRA, *words, env=program.env, cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_a_command_cannot_choose_its_loader_or_its_place(shared: Resident) -> None:
    async with strict_model() as model:
        shared.config["models"]["providers"]["fake"]["baseUrl"] = f"{model.url}/v1"
        shared.write()
        await asyncio.sleep(1.5)
        refused: tuple[dict[str, Any], ...] = (
            {"env": {"LD_PRELOAD": "/x.so"}}, {"env": {"PATH": "/x"}}, {"env": {"PYTHONPATH": "/x"}},
            {"env": {"BASH_ENV": "/x"}}, {"env": {"NODE_OPTIONS": "-r /x"}}, {"env": {"GIT_SSH_COMMAND": "x"}},
            {"workdir": "../.."}, {"workdir": "/etc"}, {"host": "gateway"}, {"elevated": True},
        )  # fmt: skip
        async with shared.client() as client:
            for more in refused:
                told = await tool(client, model, "exec", {"command": "echo IT RAN", **more})
                assert "IT RAN" not in told, more


# Stopping


@pytest.mark.req("LOOP-04")
@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("how", ["chat.abort", "/stop"])
async def test_a_stop_ends_the_programs_and_asks_the_model_no_more(tmp_path: Path, how: str) -> None:
    async with house(tmp_path) as (program, model), program.client() as client:
        run = await client.send('tool:exec {"command": "sleep 273 & sleep 273"}')
        await until(lambda: len(sleeping("273")) == 2)
        if how == "/stop":
            await client.send("/stop")
        else:
            answer = await client.call("chat.abort", {"sessionKey": "agent:main:main"})
            assert answer["runIds"] == [run]
        await until(lambda: not sleeping("273"), 2)
        assert (await client.until(run))["state"] == "aborted"
        await asyncio.sleep(0.3)
        assert len(model.requests) == 1
        last = await client.say("and on we go")
        assert last["state"] == "final"
        assert not model.refused


@pytest.mark.needs("bwrap")
async def test_a_command_that_takes_too_long_is_a_tool_result(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model), program.client() as client:
        told = await tool(client, model, "exec", {"command": "echo begun; sleep 274", "timeoutSeconds": 1})
        assert "timed out" in told
        assert "begun" in told
        await until(lambda: not sleeping("274"), 2)


async def test_a_model_that_repeats_itself_is_stopped_with_one_line(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model), program.client() as client:
        model.then(*(Use("ls", {}, id=f"call_{number}") for number in range(60)))
        last = await client.say("loop")
        assert last["state"] == "error"
        assert "repeated" in last["errorMessage"]
        assert len(model.requests) < 40
        model.replies.clear()
        assert (await client.say("and now?"))["state"] == "final"
        assert not model.refused


async def test_odd_call_ids_and_names_spoil_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as (program, model), program.client() as client:
        odd = (("ls", "functions.ls:0"), ("ls", ""), ("ls", "call_1"), ("ls", "call_1"), ("ls", "z" * 300),
               ("no such", "x"), ("", "y"), ("l\ns", "é\n"), ("exec", "w"))  # fmt: skip
        for name, call_id in odd:
            model.then(Use(name, {"wrong": ["arguments"]}, id=call_id), Say("went on"))
            last = await client.say(f"call {name!r} {call_id[:20]!r}")
            assert (last["state"], words(last)) == ("final", "went on"), (name, call_id, last)
        assert (await client.say("at the end"))["state"] == "final"
        assert not model.refused
