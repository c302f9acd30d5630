"""What fills the window of a conversation: for the gateway, for chats, and where no gateway runs."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from garra.app.house import House, embedded
from garra.config.paths import Paths
from garra.core.access import NOBODY
from garra.core.ids import SessionKey
from garra.core.keys import canonical
from garra.gateway.weighing import WHERE as WHERE
from garra.io.env import Environment
from garra.runs import explain
from garra.runs.explain import Asked, Paired


def asked(house: House, paired: Paired = lambda *_: NOBODY) -> Callable[..., Awaitable[Mapping[str, Any]]]:
    """What weighs a conversation, by its key and, where it is not the owner's, who writes there (an id).

    Its code is loaded when somebody asks.
    """

    async def context(key: SessionKey, sender: str = "") -> Mapping[str, Any]:
        weighing = importlib.import_module("garra.runs.weighing")
        session = await house.sessions.need(key)
        scope = explain.scope_of(Asked(key, sender), session, house.live.config, paired)
        found: Mapping[str, Any] = await weighing.weighed(house.assembler, session, scope)
        return found

    return context


async def answer(paths: Paths, env: Environment, key: str, agent: str) -> Mapping[str, Any]:
    """What the gateway would answer to `sessions.context`. Raises UserError as it does."""
    async with embedded(paths, env, tell=lambda _: None) as house:
        return await asked(house)(canonical(key, agent, house.live.config.session.main_key))
