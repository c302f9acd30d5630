"""The plugins of one installation, with what is in the box."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from garra.config.load import load
from garra.config.paths import Paths, resolve
from garra.config.sections import Config
from garra.domains.plugins import known, scaffold
from garra.domains.plugins.registry import Row
from garra.io.env import Environment


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = resolve(Environment({"HOME": str(tmp_path), "GARRA_STATE_DIR": str(tmp_path)}))
    found.extensions.mkdir(parents=True)
    return found


def configured(paths: Paths, *names: str) -> Config:
    entries = {name: {"enabled": True} for name in names}
    paths.config_file.write_text(json.dumps({"plugins": {"entries": entries}}))
    return load(paths, Environment({})).config


def row(paths: Paths, name: str) -> Row:
    return next(row for row in known.tried(paths, configured(paths, name)) if row.id == name)


def test_everything_in_the_box_is_ready(paths: Paths) -> None:
    assert {row.status for row in known.tried(paths, configured(paths))} == {"ready"}


def test_a_tool_hidden_by_a_built_in_one_is_listed_as_such(paths: Paths) -> None:
    scaffold.write("tool", "grepper", paths.extensions / "grepper")
    for file in (paths.extensions / "grepper").glob("*.*"):
        file.write_text(file.read_text().replace('"grepper"', '"grep"').replace('id = "grep"', 'id = "grepper"'))
    assert row(paths, "grepper").status.startswith("its tool grep is hidden by the built-in tool")


def test_a_provider_that_cannot_be_read_is_not_called_ready(paths: Paths) -> None:
    (file,) = scaffold.write("provider", "acme", paths.extensions / "acme")
    file.write_text(file.read_text().replace("family =", "# family ="))
    found = row(paths, "acme")
    assert not found.enabled
    assert str(file) in found.status


def test_the_providers_of_plugins_that_are_on(paths: Paths) -> None:
    scaffold.write("provider", "acme", paths.extensions / "acme")
    assert known.brought(paths, configured(paths)) == ()
    assert [provider.id for provider in known.brought(paths, configured(paths, "acme"))] == ["acme"]
