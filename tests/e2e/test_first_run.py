"""After a first run everything stands where people and programs look for it."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from garra.testing.model_server import ModelServer, Say
from tests.e2e.program import Program, awaited, gateway, model, speaking

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60), pytest.mark.req("COF-22", "COF-23")]

FILES = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "MEMORY.md")
FIRST_REQUEST = 12_000
"""Characters: what a first request with the default tools may have at most."""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model(ModelServer()) as running:
        yield running


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def whole(state: Path, config: str) -> None:
    """Everything is there, and for nobody else's eyes."""
    assert mode(state) == 0o700
    assert mode(state / config) == 0o600
    assert mode(state / "extensions") == 0o700
    assert [name for name in FILES if not (state / "workspace" / name).is_file()] == []


def test_after_onboarding_in_the_originals_place(program: Program) -> None:
    program.run("shim", "--dir", str(program.home / "bin"))
    argv = [str(program.home / "bin" / "openclaw"), "onboard", "--non-interactive"]
    subprocess.run(argv, env=program.variables, check=True, capture_output=True, timeout=30)
    whole(program.home / ".openclaw", "openclaw.json")
    assert not program.state.exists()


def test_onboarding_closes_a_folder_that_was_open_and_keeps_the_files_there(program: Program) -> None:
    (program.state / "workspace").mkdir(parents=True)
    program.state.chmod(0o755)
    (program.state / "workspace" / "SOUL.md").write_text("mine")
    assert program.run("onboard", "--non-interactive").code == 0
    whole(program.state, "garra.json")
    assert (program.state / "workspace" / "SOUL.md").read_text() == "mine"


def test_after_the_first_start_of_a_gateway(program: Program) -> None:
    with gateway(program):
        awaited(lambda: (program.state / "workspace" / "MEMORY.md").is_file())
        whole(program.state, "garra.json")
        assert json.loads(program.config.read_text()) == {}
    assert "garra.json sets nothing: the defaults serve" in program.run("doctor").out


def test_a_start_makes_no_configuration_beside_one_that_was_good(program: Program, server: ModelServer) -> None:
    program.configure(**speaking(server.url))
    assert program.run("agent", "--local", "-m", "hello").code == 0
    assert program.run("config", "set", "gateway.port", "18999").code == 0
    program.config.unlink()
    with gateway(program):
        assert not program.config.exists()
    assert program.run("config", "restore").code == 0
    assert json.loads(program.config.read_text())["gateway"]["port"] == 18999


def test_a_replaced_file_is_seen_by_the_next_turn_and_an_empty_one_costs_nothing(
    program: Program, server: ModelServer
) -> None:
    program.configure(**speaking(server.url))
    server.then(Say("one"), Say("two"), Say("three"))
    with gateway(program):
        awaited(lambda: (program.state / "workspace" / "MEMORY.md").is_file())
        awaited(lambda: program.run("health").code == 0)
        made = [program.state / "workspace" / name for name in ("IDENTITY.md", "USER.md", "TOOLS.md", "MEMORY.md")]
        forms = [json.dumps(file.read_text().strip())[1:-1] for file in made]
        for words in ("first", "second"):
            assert program.run("agent", "-m", words).code == 0
            draft = program.state / "workspace" / ".draft"
            draft.write_text(f"Remember the kelp of the {words}.")
            draft.replace(program.state / "workspace" / "MEMORY.md")
        assert program.run("agent", "-m", "third").code == 0
    first, second, third = (json.dumps(seen.body) for seen in server.requests if seen.method == "POST")
    assert len(first) < FIRST_REQUEST
    assert [form for form in forms if form in first] == []
    assert "the kelp of the first." in second
    assert "the kelp of the second." in third
    assert "the kelp of the first." not in third


def test_a_turn_without_a_gateway_makes_it_all_too(program: Program, server: ModelServer) -> None:
    program.configure(**speaking(server.url))
    program.config.chmod(0o600)
    assert program.run("agent", "--local", "-m", "hello").code == 0
    whole(program.state, "garra.json")
