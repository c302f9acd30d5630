"""Probing models where no gateway runs: the house is opened for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.app.house import embedded
from garra.config.paths import Paths
from garra.domains.models import probing
from garra.domains.models.probing import Limits, Target
from garra.domains.models.registry import Models
from garra.io.env import Environment


async def alone(paths: Paths, env: Environment, asked: Mapping[str, Any], limits: Limits) -> list[dict[str, Any]]:
    """`asked` has `refs` or a `provider`, `profiles`, `agent`. Raises Conflict where a gateway runs."""
    async with embedded(paths, env) as house:
        listed = await _targets(house.models, asked)
        return await probing.tried(house.models, listed, limits, agent=asked["agent"])


async def _targets(models: Models, asked: Mapping[str, Any]) -> list[Target]:
    if asked["refs"]:
        found = [models.resolve(ref) for ref in asked["refs"]]
        return [Target(model.ref, model.provider, label=model.ref) for model in found]
    await models.profiles.read()
    names = [models.provider(asked["provider"])] if asked["provider"] else probing.usable(models)
    listed = []
    for name in names:
        listed += await probing.targets(models, name, agent=asked["agent"], only=asked["profiles"])
    return listed
