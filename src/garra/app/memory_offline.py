"""What an agent remembers, for a command where no gateway runs: the house is opened, nothing in it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.app.house import House, embedded
from garra.config.paths import Paths
from garra.core.errors import NotFound
from garra.io.env import Environment


async def answer(paths: Paths, env: Environment, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the gateway would answer to the methods of memory. Raises UserError as it does."""
    async with embedded(paths, env, tell=lambda _: None) as house:
        agents = house.live.config.agents
        agent = str(params.get("agentId") or agents.default_id()).lower()
        if agent not in agents.ids():
            raise NotFound(f'unknown agent id "{agent[:64]}"')
        if not house.recalls.on:
            return {"agentId": agent, "status": "disabled"}
        if method.startswith("memory.dream"):
            return await _dreamt(house, agent, method, params)
        memory = house.recalls.memory()
        if method == "memory.search":
            return await memory.asked(agent, params)
        if method == "memory.index":
            return await memory.index(agent, force=bool(params.get("force")), wait=bool(params.get("wait")))
        return await memory.status(agent, deep=bool(params.get("deep")))


async def _dreamt(house: House, agent: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    from garra.app.dreaming import Dreams  # noqa: PLC0415 - few commands dream

    dreams = Dreams(house)
    if method == "memory.dream":
        return await dreams.dream(agent, params)
    if method == "memory.dreams.explain":
        return await dreams.explain(agent, params)
    if method == "memory.dreams.decide":
        return await dreams.decide(agent, params, by="owner")
    return await dreams.listed(agent, params)
