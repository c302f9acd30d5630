"""What `garra plugins new` writes works as it is."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import Conflict, UserError
from garra.core.schema import faults
from garra.domains.plugins import discover, scaffold
from garra.domains.plugins.registry import Registry
from garra.sdk.provider import parse


def check(schema: Mapping[str, Any], value: Any) -> Iterable[str]:
    return faults(schema, value)


def test_a_new_tool_is_offered_and_its_test_passes(tmp_path: Path) -> None:
    folder = tmp_path / "ext" / "my-weather"
    scaffold.write("tool", "my-weather", folder)
    registry = Registry({})
    registry.scan([discover.extensions(tmp_path / "ext")], {"entries": {"my-weather": {"enabled": True}}}, check)
    assert [tool.info.name for tool in registry.tools()] == ["my_weather"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "warning" not in (ran.stdout + ran.stderr).lower()


def test_a_new_provider_is_read_without_code(tmp_path: Path) -> None:
    (file,) = scaffold.write("provider", "acme", tmp_path / "acme")
    provider = parse(file.read_text(), str(file))
    assert (provider.id, provider.key_env) == ("acme", ("ACME_API_KEY",))
    assert [offer.id for offer in provider.models] == ["example-large"]


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("gadget", "x", "there is one for tool, provider"),
        ("tool", "../x", "is no name"),
        ("tool", "X", "is no name"),
        ("tool", "apply-patch", "there is a built-in tool apply_patch"),
        ("provider", "openai", "there is a built-in provider openai"),
        ("provider", "kimi", "there is a built-in provider kimi"),
    ],
)
def test_what_cannot_be_begun(tmp_path: Path, kind: str, name: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        scaffold.write(kind, name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_make_new_without_a_name_says_how_it_is_asked() -> None:
    root = Path(__file__).parents[3]
    ran = subprocess.run(["make", "-s", "new"], capture_output=True, text=True, cwd=root, check=False, timeout=15)
    assert ran.returncode != 0
    assert ran.stderr.splitlines()[0] == "Say which: make new KIND=tool NAME=weather (KIND is tool or provider)"


def test_the_steps_that_are_shown_work_as_they_are(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "garra", "plugins", "new", "tool", "rain"]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=15, cwd=tmp_path).stdout
    steps = [line.partition(":  ")[2] for line in told.splitlines() if ":  " in line]
    assert len(steps) == 2
    for step in steps:
        ran = subprocess.run(shlex.split(step), env=env, capture_output=True, text=True, check=False, cwd="/")
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(Conflict, match="is there already"):
        scaffold.write("tool", "mine", tmp_path / "mine")
