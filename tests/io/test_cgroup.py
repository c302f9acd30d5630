"""Processes of root are counted by a group of their own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from garra.io.process import cgroup
from garra.io.process.door import Programs, Start


@pytest.mark.skipif(os.geteuid() != 0, reason="anybody else's processes are counted by their limits")
async def test_a_child_is_counted_until_it_has_ended() -> None:
    programs = Programs()
    child = await programs.start(Start(("/bin/sh", "-c", "sleep 0.2; sleep 0.2"), "/", keep=True))
    if not child.group:
        pytest.skip("no group can be made here")
    folder = Path(child.group)
    assert folder.name == f"garra-{child.pid}"
    await child.wait()
    async with asyncio.timeout(5):
        while await asyncio.to_thread(folder.exists):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.02)
    await programs.close()
    assert await asyncio.to_thread(cgroup.enclose, 2**30, 5) == ""
    assert not await asyncio.to_thread(folder.with_name(f"garra-{2**30}").exists)


def test_what_is_gone_is_no_fault(tmp_path: Path) -> None:
    cgroup.release(str(tmp_path / "gone"))
    assert not (tmp_path / "gone").exists()
