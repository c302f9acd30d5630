"""A command that meets another's gateway, and a gateway that takes up a provider while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from garra.testing.model_server import ModelServer, Say
from tests.e2e.program import Program, awaited, gateway, model, port, speaking

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

PROVIDER = """
id = "acme"
kind = "provider"
api = 1
name = "Acme"
family = "openai-completions"
base_url = "{url}/v1"
auth = "optional"
default = "large"

[[model]]
id = "large"
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model(ModelServer()) as running:
        yield running


def test_anothers_gateway_is_told_with_what_to_do(program: Program, tmp_path: Path) -> None:
    other = Program(tmp_path / "other")
    other.home.mkdir()
    other.configure(gateway={"auth": {"mode": "token", "token": "theirs"}})
    with gateway(other):
        awaited(lambda: other.run("health").code == 0)
        program.env["GARRA_GATEWAY_PORT"] = str(port(other))
        for token in ("", "wrong"):
            program.env["GARRA_GATEWAY_TOKEN"] = token
            ran = program.run("messages", "list")
            assert (ran.code, ran.out) == (1, "")
            assert "--token TEXT, or the variable GARRA_GATEWAY_TOKEN" in ran.err
            assert f"ws://127.0.0.1:{port(other)}" in ran.err
            assert len(ran.err.splitlines()) == 1
        program.env["GARRA_GATEWAY_TOKEN"] = "theirs"
        assert program.run("messages", "list").code == 0


def test_a_provider_switched_on_while_the_gateway_runs_serves_the_next_turn(
    program: Program, server: ModelServer
) -> None:
    program.configure(**speaking(server.url))
    folder = program.state / "extensions" / "acme"
    folder.mkdir(parents=True)
    (folder / "manifest.toml").write_text(PROVIDER.format(url=server.url))
    server.then(Say("from acme"))
    with gateway(program):
        awaited(lambda: program.run("health").code == 0)
        before = program.run("agent", "-m", "hello", "--model", "acme/large")
        assert (before.code, "no provider 'acme'" in before.err) == (1, True)
        assert program.run("config", "set", "plugins.entries.acme.enabled", "true").code == 0
        awaited(lambda: "acme" in program.run("gateway", "call", "models.list", "--params", '{"view": "all"}').out)
        after = program.run("agent", "-m", "hello", "--model", "acme/large")
        assert (after.code, after.out, after.err) == (0, "from acme\n", "")
