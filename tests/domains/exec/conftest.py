from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from garra.io.process.door import Programs
from garra.io.tasks import Tasks
from tests.domains.exec.house import House


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    programs = Programs()
    async with Tasks() as tasks:
        yield House(workspace, tasks, programs)
        await programs.close()
