"""`garra sessions` beside a running gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from garra.testing.model_server import ModelServer
from tests.e2e.program import Program, gateway, model

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

KEY = "agent:main:main"


def test_a_whole_conversation_is_forked_beside_a_running_gateway(tmp_path: Path) -> None:
    program = Program(tmp_path)
    with model(ModelServer()) as server:
        provider = {"api": "openai-completions", "baseUrl": f"{server.url}/v1", "apiKey": "k"}
        rows = [{"id": "fake", "name": "fake", "contextWindow": 100_000}]
        program.configure(
            models={"providers": {"fake": {**provider, "models": rows}}},
            agents={"defaults": {"model": {"primary": "fake/fake"}, "skipBootstrap": True}},
        )
        with gateway(program):
            said = program.run("agent", "-m", "the boat is called Petrel")
            assert said.code == 0, said.err
            forked = program.run("sessions", "fork", KEY, "--json")
            assert forked.code == 0, forked.err
            history = program.run("sessions", "history", forked.json["key"], "--json").json
            assert [message["role"] for message in history["messages"]] == ["user", "assistant"]
            unknown = program.run("sessions", "fork", "agent:main:nobody")
            assert (unknown.code, unknown.err) == (1, "garra: there is no session agent:main:nobody\n")
