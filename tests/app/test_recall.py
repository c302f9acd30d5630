"""The port `recall` before there is an index, and in front of one."""

from __future__ import annotations

import pytest

from garra.app.recall import Recalls
from garra.core.errors import Unavailable
from garra.core.ids import AgentId
from garra.sdk.context import Recalled
from garra.testing.context import FakeRecall

FIGS = Recalled("Ana likes figs", "MEMORY.md", 3, 0.9)


async def test_nobody_is_told_of_memory_that_is_not_there() -> None:
    with pytest.raises(Unavailable, match="not indexed"):
        await Recalls().search("x", agent_id=AgentId("main"), owner="", limit=1)


async def test_the_index_is_asked_once_there_is_one() -> None:
    recalls, source = Recalls(), FakeRecall((FIGS,))
    recalls.source = source
    assert await recalls.search("figs", agent_id=AgentId("main"), owner="o", limit=1) == (FIGS,)
    assert source.queries == [("figs", "main", "o")]
