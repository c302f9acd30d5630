"""A secret of one run reaches the same user's programs, and no file."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest

import garra
from garra.client.passing import ask
from garra.io import passing

SECRET = "a-secret-of-this-run"


@pytest.mark.req("SEC-09")
async def test_handed_to_the_same_user_and_kept_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sock"
    close = await passing.hand_out(path, lambda: SECRET)
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await asyncio.to_thread(ask, path) == SECRET
        assert not any(SECRET in file.read_text() for file in tmp_path.rglob("*") if file.is_file())
    finally:
        await close()
    assert not path.exists()
    assert await asyncio.to_thread(ask, path) == ""


OTHER = """
import os, pathlib, sys
os.setuid(1234)
sys.path.insert(0, sys.argv[1])
from garra.client.passing import ask
print(repr(ask(pathlib.Path(sys.argv[2]))))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can knock as another user")
async def test_another_user_gets_nothing() -> None:
    with tempfile.TemporaryDirectory() as open_folder:
        path = Path(open_folder) / "gateway.sock"
        close = await passing.hand_out(path, lambda: SECRET)
        path.chmod(0o777)
        Path(open_folder).chmod(0o755)
        source = str(Path(garra.__file__).parents[1])
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", OTHER, source, str(path), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await child.communicate()
        await close()
    assert said.decode().strip() in {"''", ""}  # empty where the other user cannot even read the program


async def test_what_a_dead_run_left_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sock"
    left = await passing.hand_out(path, lambda: "old")
    close = await passing.hand_out(path, lambda: SECRET)
    assert await asyncio.to_thread(ask, path) == SECRET
    await close()
    await left()
