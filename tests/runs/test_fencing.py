"""What holds for an agent's commands is told as it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from garra.config.paths import Paths, resolve
from garra.config.sections import Config
from garra.core.errors import NotFound
from garra.runs.fencing import rows, told


def paths(root: Path) -> Paths:
    return resolve({"HOME": str(root)})


def explained(root: Path, config: dict[str, Any], session: str = "") -> dict[str, str]:
    return dict(rows(told(Config.model_validate(config), paths(root), session)))


def test_a_session_is_shut_in_as_its_mode_says(tmp_path: Path) -> None:
    sandbox = {"mode": "non-main", "egress": {"allow": ["pypi.org"], "ask": "off"}}
    config = {"agents": {"defaults": {"sandbox": sandbox}}, "tools": {"elevated": {"enabled": False}}}
    assert explained(tmp_path, config)["its commands run"] == "on this machine (sandbox.mode)"
    group = explained(tmp_path, config, "agent:main:telegram:group:-1")
    assert group["its commands run"] == "in a sandbox of their own each"
    assert (group["may reach"], group["elevated"]) == ("pypi.org", "off")
    shown = told(Config(), paths(tmp_path), "main")
    assert (shown["sessionKey"], shown["sandbox"]["sessionIsSandboxed"]) == ("agent:main:main", True)
    assert "a person is asked" in dict(rows(shown))["may reach"]


def test_on_the_machine_itself_and_with_binds(tmp_path: Path) -> None:
    sandbox = {"docker": {"binds": ["/srv/x:/x:ro", "nonsense"]}}
    config = {
        "agents": {"defaults": {"sandbox": sandbox}},
        "tools": {"exec": {"host": "gateway"}, "elevated": {"enabled": True, "allowFrom": {"telegram": ["1"]}}},
    }
    found = explained(tmp_path, config)
    assert "tools.exec.host is gateway" in found["its commands run"]
    assert found["also sees"] == "/srv/x:/x:ro"
    assert "nonsense" in found["nothing runs"]
    assert found["elevated"] == "on, from telegram"


def test_an_agent_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is: main"):
        told(Config(), paths(tmp_path), agent="nobody")
