"""What fills the window of a conversation: for the gateway, for chats, and where no gateway runs."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from garra.app.house import House, embedded
from garra.config.paths import Paths
from garra.core.ids import SessionKey
from garra.core.keys import canonical
from garra.domains.sessions.session import Session
from garra.domains.tools.pipeline import Scope
from garra.io.env import Environment
from garra.runs import explain
from garra.runs.explain import Asked

if TYPE_CHECKING:
    from garra.runs.explain import Paired

Weigh = Callable[[Session, Scope], Awaitable[dict[str, Any]]]


def made(house: House) -> Weigh:
    """What weighs conversations; its code is loaded when somebody asks."""

    async def weigh(session: Session, scope: Scope) -> dict[str, Any]:
        weighing = importlib.import_module("garra.runs.weighing")
        found: dict[str, Any] = await weighing.weighed(house.assembler, session, scope)
        return found

    return weigh


def asked(house: House, paired: Paired) -> Callable[[SessionKey], Awaitable[Mapping[str, Any]]]:
    """The same for a chat's own conversation."""
    weigh = made(house)

    async def context(key: SessionKey) -> Mapping[str, Any]:
        session = await house.sessions.need(key)
        return await weigh(session, explain.scope_of(Asked(key), session, house.live.config, paired))

    return context


async def answer(paths: Paths, env: Environment, key: str, agent: str) -> dict[str, Any]:
    """What the gateway would answer to `sessions.context`. Raises UserError as it does."""
    async with embedded(paths, env, tell=lambda _: None) as house:
        config = house.live.config
        session = await house.sessions.need(canonical(key, agent, config.session.main_key))
        return await made(house)(session, explain.scope_of(Asked(session.key), session, config))
