"""Processes of root are counted, together, by a group of their own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from garra.io.process import cgroup
from garra.io.process.door import Programs, Start


@pytest.mark.skipif(os.geteuid() != 0, reason="anybody else's processes are counted by their limits")
async def test_children_are_counted_until_the_door_is_closed() -> None:
    programs = Programs()
    said = await programs.run(Start(("/bin/cat", "/proc/self/cgroup"), "/"))
    found = [line.rpartition("/")[2] for line in said.output.decode().split() if "/garra-" in line]
    if not found:
        await programs.close()
        pytest.skip("no group can be made here")
    assert found[0].startswith(f"garra-{os.getpid()}-")
    assert "garra-" not in await asyncio.to_thread(Path("/proc/self/cgroup").read_text)
    folder = Path("/sys/fs/cgroup/pids") / found[0]
    assert (await asyncio.to_thread((folder / "pids.max").read_text)).strip() == str(cgroup.MOST)
    await programs.close()
    assert not await asyncio.to_thread(folder.exists)


def test_what_is_gone_is_no_fault(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    cgroup.release(str(gone))
    assert not gone.exists()
