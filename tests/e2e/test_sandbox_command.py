"""`garra sandbox` at the command line: nothing stands, an engine that is set and not there, and what holds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.program import Program

pytestmark = pytest.mark.e2e


@pytest.mark.skipif(shutil.which("podman") is not None, reason="there is an engine here")
def test_containers_are_told_or_why_they_cannot_be(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.configure()
    assert "No sandbox stands" in program.run("sandbox", "list").out
    assert program.run("sandbox", "list", "--json").json == {"containers": [], "browsers": []}
    assert program.run("sandbox", "recreate", "--all", "--json").json == {"removed": [], "failed": []}
    assert "say which" in program.run("sandbox", "recreate").err
    docker = json.dumps({"image": "debian:12", "setupCommand": ["apt-get update", "apt-get install -y jq"], "cpus": 2})
    for key, value in (("backend", "podman"), ("docker", docker)):
        assert program.run("config", "set", f"agents.defaults.sandbox.{key}", value).code == 0
    for verb in (("list",), ("recreate", "--all")):
        refused = program.run("sandbox", *verb)
        assert (refused.code, "podman is not installed" in refused.err) == (1, True)
    told = program.run("sandbox", "explain", "--session", "main", "--json").json["sandbox"]
    assert (told["backend"], told["fault"]) == ("podman", None)
    made = told["container"]
    assert (made["image"], made["network"], made["setupCommand"]) == ("debian:12", "none", True)
    assert made["scope"] == "agent:main"
    shown = program.run("sandbox", "explain").out
    assert "debian:12, network none, after docker.setupCommand, for agent:main" in shown
    program.run("config", "set", "agents.defaults.sandbox.docker.network", "host")
    assert "machine's own network" in program.run("sandbox", "explain").out
