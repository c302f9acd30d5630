"""Which tools a session has, for a command where no gateway runs: the house is opened, nothing in it runs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

from garra.app import offline
from garra.app.house import Found, House, Options, opened
from garra.config.live import Live
from garra.config.load import load
from garra.config.paths import Paths
from garra.core.errors import NotFound
from garra.core.keys import agent_of, canonical
from garra.domains.access.pairing import Pairing
from garra.domains.sessions.session import Session
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.store.shelf import Shelf
from garra.io.tasks import Tasks
from garra.runs.explain import Asked
from garra.runs.toolbox import Toolbox


async def answer(paths: Paths, env: Environment, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the gateway would answer to `tools.policy` or `tools.explain`. Raises UserError as it does."""
    live = Live(paths, env, await asyncio.to_thread(load, paths, env))
    async with (
        offline.opened(paths) as db,
        Tasks() as spawn,
        opened(paths, env, Options(found=Found(live, db, spawn), tell=lambda _: None, shared=True)) as house,
    ):
        pairing = Pairing(lambda name: Shelf(house.db, name), SystemClock(), secrets.randbelow)
        await pairing.load()
        asked, session = await _asked(house, params)
        tools = Toolbox(house.assembler)
        if method == "tools.explain":
            return tools.explain(str(params["name"]), asked, session, pairing.allowed)
        return tools.policy(asked, session, pairing.allowed)


async def _asked(house: House, params: Mapping[str, Any]) -> tuple[Asked, Session | None]:
    config = house.live.config
    agent = str(params.get("agentId") or config.agents.default_id()).lower()
    key = canonical(str(params.get("sessionKey") or "main"), agent, config.session.main_key)
    owner = agent_of(key, config.agents.default_id())
    if owner not in config.agents.ids():
        raise NotFound(f'unknown agent id "{owner[:64]}"')
    session = await house.sessions.get(key)
    sender = str(params.get("senderId") or "")
    try:
        model = house.models.resolve(session.override if session else None, owner)
    except NotFound:
        return Asked(key, sender), session
    return Asked(key, sender, model.provider, model.id, model.api), session
