"""The commands around the agent: set-up, state, devices, doctor, logs, shim, completion."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest

from garra.faces.cli.onboard import EXAMPLE
from tests.e2e.program import Program, awaited, gateway, port, speaking
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.e2e


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


CUSTOM = (
    "onboard",
    "--non-interactive",
    "--custom-base-url",
    "http://127.0.0.1:9/v1/",
    "--custom-api-key",
    "${MY_KEY}",
)


@pytest.mark.req("BOOT-08")
def test_onboard_writes_a_valid_configuration_and_keeps_what_stands_there(program: Program) -> None:
    ran = program.run(*CUSTOM, "--custom-model-id", "m1", "--json")
    assert ran.code == 0
    assert ran.json["model"] == "custom/m1"
    assert program.run("config", "validate").code == 0
    first = json.loads(program.config.read_text())
    assert first["models"]["providers"]["custom"]["apiKey"] == "${MY_KEY}"
    token = first["gateway"]["auth"]["token"]
    assert len(token) >= 32
    program.config.write_text(
        program.config.read_text().replace("{", '{\n  // mine\n  "ui": {"seamColor": "#123456"},', 1)
    )
    again = program.run(*CUSTOM, "--custom-model-id", "m2")
    assert again.code == 0
    text = program.config.read_text()
    assert "// mine" in text
    assert "#123456" in text
    assert token in text
    assert '"custom/m2"' in text


def test_onboard_without_a_model_and_with_bad_words(program: Program) -> None:
    assert program.run(*CUSTOM).code == 0
    assert program.run("config", "validate").code == 0
    wrong = program.run("onboard", "--non-interactive", "--custom-base-url", "ftp://x")
    assert (wrong.code, wrong.out) == (1, "")
    assert "http://" in wrong.err
    assert program.run("onboard", "--non-interactive", "--custom-model-id", "m").code == 1
    assert "terminal" in program.run("onboard").err


def test_onboard_takes_no_model_that_is_none(program: Program) -> None:
    wrong = program.run("onboard", "--non-interactive", "--model", "foo")
    assert (wrong.code, wrong.out, "foo" in wrong.err) == (1, "", True)
    assert not program.config.exists()
    assert program.run("onboard", "--non-interactive", "--model", EXAMPLE, "--json").json["model"] == EXAMPLE
    doubted = program.run("onboard", "--non-interactive", "--model", "anthropic/clod")
    assert (doubted.code, "not in the catalog of anthropic" in doubted.err) == (0, True)


@pytest.mark.needs("tmux")
def test_onboard_lets_garra_pick_again(program: Program) -> None:
    assert program.run("onboard", "--non-interactive", "--model", EXAMPLE).code == 0
    terminal = Terminal(program)
    try:
        terminal.start("onboard")
        assert f"4  {EXAMPLE}, as now" in terminal.shows("1 to 4 [4]:")
        terminal.type("1")
        terminal.shows("none set: the first turn picks one")
    finally:
        terminal.close()
    assert "primary" not in program.config.read_text()


@pytest.mark.req("COF-22")
def test_the_shim_stands_in_the_originals_place(program: Program) -> None:
    ran = program.run("shim", "--dir", str(program.home / "bin"), "--json")
    assert ran.json == {"ok": True, "path": str(program.home / "bin" / "openclaw"), "onPath": False}
    script = program.home / "bin" / "openclaw"
    argv = [str(script), "onboard", "--non-interactive", "--custom-base-url", "http://127.0.0.1:9/v1"]
    subprocess.run(argv, env=program.variables, check=True, capture_output=True, timeout=30)
    folder = program.home / ".openclaw"
    assert mode(folder) == 0o700
    assert mode(folder / "openclaw.json") == 0o600
    assert (folder / "workspace").is_dir()
    assert not program.state.exists()
    (folder / "skills").mkdir()
    assert program.run("shim", "--dir", str(program.home / "bin")).code == 0
    script.write_text("#!/bin/sh\n")
    refused = program.run("shim", "--dir", str(program.home / "bin"))
    assert (refused.code, "not ours" in refused.err) == (1, True)
    assert program.run("shim", "--dir", str(program.home / "bin"), "--force").code == 0


def test_state_health_and_calls_with_and_without_a_gateway(program: Program) -> None:
    program.configure(**speaking("http://127.0.0.1:9", gateway={"auth": {"mode": "token", "token": "t"}}))
    assert program.run("status", "--json").json["gateway"]["reachable"] is False
    for words in (("health", "--json"), ("gateway", "call", "status", "--json")):
        down = program.run(*words)
        assert (down.code, down.json["error"]["type"], down.json["error"]["kind"]) == (
            1,
            "gateway_transport_error",
            "refused",
        )
    with gateway(program) as process:
        status = program.run("status", "--json").json
        assert status["gateway"]["reachable"] is True
        assert status["gateway"]["process"]["pid"] == process.pid
        assert status["gateway"]["url"].endswith(f":{port(program)}")
        assert program.run("health", "--json").json["ok"] is True
        assert program.run("gateway", "status", "--json").json["ok"] is True
        plain = program.run("gateway", "call", "sessions.list")
        assert plain.out.startswith("Gateway call: sessions.list\n{")
        unknown = program.run("gateway", "call", "no.such")
        assert (unknown.code, unknown.out) == (1, "")
        assert unknown.err == "Gateway call failed: unknown method: no.such\n"
        assert program.run("gateway", "call", "health", "--params", "[").code == 1
        devices = program.run("devices", "list", "--json")
        assert (devices.code, devices.json["pending"]) == (0, [])
        assert program.run("devices", "approve", "nobody").code == 1
        wrong = program.run("gateway", "call", "health", "--url", f"ws://127.0.0.1:{port(program)}", "--token", "wrong")
        assert (wrong.code, "token" in wrong.err) == (1, True)
    assert any(json.loads(line)["message"] for line in program.run("logs", "--json").out.splitlines())


def test_a_chosen_model_answers_once_the_command_is_done(program: Program) -> None:
    program.configure(**speaking("http://127.0.0.1:9"))
    with gateway(program):
        for model in ("ollama/a", "local/smollm2", "ollama/b"):
            assert program.run("models", "set", model).code == 0
            told = program.run("gateway", "call", "agents.list", "--json").json
            assert told["agents"][0]["model"]["primary"] == model


def test_a_key_that_only_this_shell_has_is_said_to_be_lacking_in_the_gateway(program: Program) -> None:
    config = speaking("http://127.0.0.1:9")
    config["models"]["providers"]["fake"]["apiKey"] = "${ACME_API_KEY}"
    program.configure(**config)
    with gateway(program):
        program.env["ACME_API_KEY"] = "k"
        ran = program.run("agent", "--local", "-m", "hello")
    assert (ran.code, ran.out) == (1, "")
    assert "the gateway that runs here was asked, and has no ACME_API_KEY in its environment" in ran.err


def test_what_is_cut_off_is_told_wherever_a_person_looks(program: Program) -> None:
    bot = {"botToken": "1:a", "apiRoot": "http://127.0.0.1:9"}
    program.configure(**speaking("http://127.0.0.1:9", channels={"telegram": bot}))
    with gateway(program):
        awaited(lambda: "telegram/default: " in program.run("status").out, 30)
        assert "Channels  0 of 1 connected\n" in program.run("status").out
        doctor = program.run("doctor")
        assert (doctor.code, "Nothing stands in the way" in doctor.out) == (1, False)
        assert "telegram/default is not connected: " in doctor.out
        health = program.run("health")
        assert health.out.startswith("it runs, but not all of it")
        assert "telegram/default is not connected: " in health.out
        assert health.out.splitlines()[1] == "sessions  0"


def test_a_gateway_without_a_configured_token_lets_this_owners_commands_in(program: Program) -> None:
    with gateway(program):
        status = program.run("status", "--json")
        assert status.json["gateway"]["reachable"] is True
        assert "token" not in status.json["gateway"]["process"]
        assert mode(program.state / "gateway.lock") == 0o600
    assert "token" not in (program.state / "gateway.lock").read_text()


def test_doctor_exits_by_what_it_finds_and_mends_it(program: Program) -> None:
    program.configure(**speaking("http://127.0.0.1:9"))
    program.run("config", "set", "gateway.port", "18790")
    program.config.write_text('{"gateway": {\n  "port": }}')
    broken = program.run("doctor", "--json")
    assert (broken.code, broken.json["ok"]) == (1, False)
    assert any("line 2" in row["what"] and "config restore" in row["how"] for row in broken.json["findings"])
    mended = program.run("doctor", "--fix")
    assert mended.code == 0
    assert "brought the last good configuration back" in mended.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(program: Program, shell: str) -> None:
    script = program.run("completion", shell).out
    assert "onboard" in script
    assert "install-local" in script
    if shell == "bash":
        asked = 'COMP_WORDS=(garra gateway ca); COMP_CWORD=2; _garra; echo "${COMPREPLY[*]}"'
        ran = subprocess.run(
            ["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, check=True, timeout=10
        )
        assert ran.stdout == "call\n"
