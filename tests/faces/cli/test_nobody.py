"""What the commands say where no gateway runs: what is wrong once, and how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from garra.client.socket import nobody, own, reason
from tests.faces.cli.test_channels import garra

NOBODY = {"GARRA_GATEWAY_PORT": "1"}
START = "Start one with: garra gateway run"


@pytest.mark.parametrize("command", ["messages", "devices", "health", "gateway call health"])
def test_every_command_says_how_to_start_one(tmp_path: Path, command: str) -> None:
    done = garra(tmp_path, *command.split(), **NOBODY)
    assert done.returncode == 1
    assert done.stderr.count("no gateway answers at ws://127.0.0.1:1") == 1
    assert done.stderr.count(START) == 1


def test_another_machines_gateway_is_not_started_here() -> None:
    assert START not in nobody("wss://far.example/x", "refused").message
    assert own("ws://[::1]:5")
    assert not own("wss://far.example")
    assert reason(nobody("ws://localhost:1", "refused").message, "ws://localhost:1") == "refused"


def test_status_says_it_once(tmp_path: Path) -> None:
    said = garra(tmp_path, "status", **NOBODY).stdout
    assert "Gateway   not running at ws://127.0.0.1:1 (Connection refused)\n" in said
    assert said.count("gateway run") == 1
    said = garra(tmp_path, "gateway", "status", **NOBODY).stdout
    assert said == f"Gateway at ws://127.0.0.1:1 does not answer: Connection refused\n{START}\n"


def test_a_gateway_that_was_not_asked_is_not_called_down(tmp_path: Path) -> None:
    said = garra(tmp_path, "status", "--url", "ws://127.0.0.1:1").stdout
    assert "Gateway   not asked: ws://127.0.0.1:1: give the token too" in said
    assert "gateway run" not in said
