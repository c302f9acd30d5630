"""What is written again after a loss is as closed as before."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from garra.config.paths import resolve
from garra.config.write import Writer
from garra.io.env import Environment


def test_what_is_brought_back_is_its_owners_alone(tmp_path: Path) -> None:
    env = Environment({"HOME": str(tmp_path)})
    paths = resolve(env)
    before = os.umask(0)
    try:
        Writer(paths, env).set("gateway.port", 18_790)
        Writer(paths, env).set("gateway.port", 18_791)
        paths.config_file.write_text("{ broken")
        paths.config_file.chmod(0o644)
        Writer(paths, env).restore()
        paths.config_file.unlink()
        Writer(paths, env).restore()
    finally:
        os.umask(before)
    every = [path for path in paths.state.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in every} == {0o600}
    assert {path.name for path in every} >= {"garra.json", "garra.json.last-good", "garra.json.broken"}
    assert stat.S_IMODE(paths.state.stat().st_mode) == 0o700


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_whatever_the_mask_of_the_process(tmp_path: Path, mask: int) -> None:
    env = Environment({"HOME": str(tmp_path)})
    paths = resolve(env)
    before = os.umask(mask)
    try:
        Writer(paths, env).set("gateway.port", 18_790)
    finally:
        os.umask(before)
    assert stat.S_IMODE(paths.config_file.stat().st_mode) == 0o600
