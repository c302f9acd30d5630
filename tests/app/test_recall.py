"""The port `recall`: nothing where memory is off, else what is made when it is first asked."""

from __future__ import annotations

from typing import cast

import pytest

from garra.app.memory import Remembering
from garra.app.recall import Recalls
from garra.config.sections import Config
from garra.core.errors import Unavailable
from garra.core.ids import AgentId
from garra.sdk.context import Recalled
from garra.testing.context import FakeRecall

FIGS = Recalled("Ana likes figs", "MEMORY.md", 3, 0.9)


async def test_nobody_is_told_of_memory_that_is_off() -> None:
    off = Config.model_validate({"plugins": {"slots": {"memory": "none"}}})
    recalls = Recalls(lambda: off, lambda: cast(Remembering, FakeRecall((FIGS,))))
    with pytest.raises(Unavailable, match="switched off"):
        await recalls.search("x", agent_id=AgentId("main"), owner="", limit=1)


async def test_it_is_made_once_and_asked() -> None:
    made: list[FakeRecall] = []

    def make() -> Remembering:
        made.append(FakeRecall((FIGS,)))
        return cast(Remembering, made[-1])

    recalls = Recalls(lambda: Config.model_validate({}), make)
    for _ in range(2):
        assert await recalls.search("figs", agent_id=AgentId("main"), owner="o", limit=1) == (FIGS,)
    [source] = made
    assert source.queries == [("figs", "main", "o")] * 2
