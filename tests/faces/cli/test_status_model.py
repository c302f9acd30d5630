"""The model as `garra status` shows it: one that has no key is not shown as if it could answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faces.cli.test_channels import garra

ACME = {"api": "openai-completions", "baseUrl": "http://a", "models": [{"id": "m", "name": "M"}]}


def configured(state: Path, model: str, **provider: Any) -> None:
    body: dict[str, Any] = {"agents": {"defaults": {"model": {"primary": model}}}}
    if provider:
        body["models"] = {"providers": {"acme": provider}}
    (state / "garra.json").write_text(json.dumps(body))


@pytest.mark.parametrize(
    ("model", "provider", "env", "lacks"),
    [
        ("groq/m", {}, {}, True),
        ("groq/m", {}, {"GROQ_API_KEY": "g"}, False),
        ("acme/m", {**ACME, "apiKey": "${ACME_API_KEY}"}, {}, True),
        ("acme/m", {**ACME, "apiKey": "${ACME_API_KEY}"}, {"ACME_API_KEY": "a"}, False),
        ("acme/m", ACME, {}, False),
        ("ollama/m", {}, {}, False),
        ("local/smollm2", {}, {}, False),
        ("../x/m", {}, {}, False),
        ("fast", {}, {}, False),
    ],
)
def test_a_model_without_a_key_is_marked(
    tmp_path: Path, model: str, provider: dict[str, Any], env: dict[str, str], *, lacks: bool
) -> None:
    configured(tmp_path, model, **provider)
    said = garra(tmp_path, "status", GARRA_GATEWAY_PORT="1", **env).stdout
    assert f"Model     {model}" in said
    assert ("(no key here" in said) is lacks


def test_a_key_in_the_state_folder_counts(tmp_path: Path) -> None:
    configured(tmp_path, "groq/m")
    (tmp_path / ".env").write_text("GROQ_API_KEY=g\n")
    assert json.loads(garra(tmp_path, "status", "--json", GARRA_GATEWAY_PORT="1").stdout)["keyMissing"] is False


def test_a_value_that_is_not_valid_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "garra.json").write_text('{"gateway": {"port": "abc"}}')
    shown = garra(tmp_path, "status").stdout
    assert "not valid: gateway.port: Invalid input: expected a valid integer" in shown
    assert "there is no last good one: the defaults serve; garra repair mends it" in shown
    assert "config restore" not in shown
    (tmp_path / "garra.json").write_text("{}")
    assert "not valid" not in garra(tmp_path, "status").stdout
    (tmp_path / "garra.json").write_text("{")
    shown = garra(tmp_path, "status").stdout
    assert "the last good one serves; garra repair mends it, garra config restore brings that one back" in shown
    assert garra(tmp_path, "config", "restore").returncode == 0
