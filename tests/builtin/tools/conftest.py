from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from garra.builtin.tools.agents_list import AgentsList
from garra.builtin.tools.apply_patch import ApplyPatch
from garra.builtin.tools.ask_user import AskUser
from garra.builtin.tools.edit import EditFile
from garra.builtin.tools.exec import ExecTool
from garra.builtin.tools.find import Find
from garra.builtin.tools.gateway import Gateway
from garra.builtin.tools.grep import Grep
from garra.builtin.tools.ls import Ls
from garra.builtin.tools.message import Message
from garra.builtin.tools.process import Process
from garra.builtin.tools.read import Read
from garra.builtin.tools.session_status import SessionStatus
from garra.builtin.tools.sessions_history import SessionsHistory
from garra.builtin.tools.sessions_list import SessionsList
from garra.builtin.tools.sessions_search import SessionsSearch
from garra.builtin.tools.sessions_send import SessionsSend
from garra.builtin.tools.write import Write
from garra.core.execplan import Settings
from garra.core.execrules import Policy
from garra.sdk.tool import Tool
from tests.builtin.tools.place import Place, opened


@pytest.fixture(scope="session")
def tools() -> tuple[Tool, ...]:
    return (
        Read(), Write(), EditFile(), ApplyPatch(), Ls(), Find(), Grep(), ExecTool(), Process(), SessionsList(),
        SessionsHistory(), SessionsSearch(), SessionsSend(), SessionStatus(), AgentsList(), Message(), AskUser(),
        Gateway(),
    )  # fmt: skip


@pytest.fixture
async def place(tmp_path: Path, tools: tuple[Tool, ...]) -> AsyncIterator[Place]:
    root = tmp_path / "work"
    root.mkdir()
    async with opened(root, tools, Settings(host="gateway", policy=Policy("full", "off"))) as made:
        yield made
