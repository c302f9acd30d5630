"""Taking over from OpenClaw: the state it left is looked at, brought in, and the conversation goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from garra.testing.model_server import ModelServer
from tests.domains.migration import places
from tests.e2e.program import Program, gateway, model

pytestmark = pytest.mark.e2e
KEY = "agent:main:telegram:direct:1001"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    home = tmp_path / "home"
    home.mkdir()
    return Program(home)


def test_an_openclaw_state_is_taken_over_and_its_conversation_goes_on(program: Program, tmp_path: Path) -> None:
    with model(ModelServer()) as server:
        state = places.openclaw(tmp_path, server.url)
        words = ("migrate", "openclaw", "--from", str(state))
        look = program.run(*words, "--dry-run", "--json")
        assert look.json["summary"]["planned"] == 9
        assert not program.config.exists()
        assert "sk-" not in look.out
        done = program.run(*words, "--yes", "--include-secrets")
        assert done.code == 0, done.out + done.err
        assert "10 done" in done.out
        again = program.run(*words, "--yes", "--include-secrets", "--json")
        assert {row["status"] for row in again.json["items"] if row["kind"] == "session"} == {"skipped"}
        workspace = program.state / "workspace"
        assert "Birthday" in (workspace / "MEMORY.md").read_text()
        config = json.loads(program.config.read_text())
        config["channels"]["telegram"]["enabled"] = False
        program.config.write_text(json.dumps(config))
        with gateway(program):
            asked = program.run("agent", "--session-key", KEY, "-m", "What is my dog called?", "--json")
            assert asked.code == 0, asked.err
        request = server.requests[-1].body
        assert "My dog is called Bruno" in json.dumps(request)
        assert "What is my dog called?" in json.dumps(request["messages"][-1])
    report = next((program.state / "migrations").glob("*/report.json")).read_text()
    assert "FAKEFAKE" not in report


def test_what_stands_here_is_not_touched_unless_it_is_wished(program: Program, tmp_path: Path) -> None:
    state = places.openclaw(tmp_path)
    program.configure(logging={"level": "info"})
    kept = program.config.read_text()
    ran = program.run("migrate", "openclaw", "--from", str(state), "--yes")
    assert ran.code == 2
    assert "--overwrite" in ran.err
    assert program.config.read_text() == kept
    ran = program.run("migrate", "openclaw", "--from", str(state), "--yes", "--overwrite", "--item", "config")
    assert ran.code == 0, ran.err
    assert "without its 3 secrets" in ran.out
    assert "fa" in json.loads(program.config.read_text())["models"]["providers"]
    assert "sk-arena" not in program.config.read_text()


def test_a_running_gateway_and_a_wrong_folder_are_said_in_one_line(program: Program, tmp_path: Path) -> None:
    ran = program.run("migrate", "openclaw", "--from", str(tmp_path))
    assert ran.code != 0
    assert ran.err.count("\n") == 1
    assert "is no OpenClaw state folder" in ran.err
    program.configure()
    state = places.openclaw(tmp_path)
    with gateway(program):
        ran = program.run("migrate", "openclaw", "--from", str(state), "--yes", "--item", "pairing")
        assert ran.code != 0
        assert "a gateway is running" in ran.err


def test_a_second_run_finds_everything_here_and_an_unknown_item_is_told(program: Program, tmp_path: Path) -> None:
    words = ("migrate", "openclaw", "--from", str(places.openclaw(tmp_path)), "--yes")
    unknown = program.run(*words, "--item", "nope")
    assert unknown.code == 1
    assert "there is no nope to take over" in unknown.err
    assert "config" in unknown.err
    assert not program.config.exists()
    assert program.run(*words).code == 0
    again = program.run(*words, "--json")
    assert again.code == 0, again.out + again.err
    states = {row["kind"]: row["status"] for row in again.json["items"]}
    assert states["config"] == states["session"] == "skipped"
