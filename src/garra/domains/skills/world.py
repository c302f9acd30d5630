"""What skills find on this machine and in its configuration."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from typing import Any

from garra.config.sections import Config
from garra.core.skills import World


def world(config: Config, resolved: Mapping[str, Any], env: Mapping[str, str], agent_id: str) -> World:
    """As skills of an agent see it; `resolved` is the configuration as plain values."""
    path = env.get("PATH", "")
    return World(
        has_bin=lambda name: shutil.which(name, path=path) is not None,
        has_env=lambda name: bool(env.get(name)),
        has_config=lambda name: bool(_looked_up(resolved, name)),
        platform=sys.platform,
        given={key: _given(entry) for key, entry in config.skills.entries.items()},
        only=only(config, agent_id),
    )


def off(config: Config) -> frozenset[str]:
    """The skills that are switched off, by key."""
    return frozenset(key for key, entry in config.skills.entries.items() if entry.enabled is False)


def only(config: Config, agent_id: str) -> frozenset[str] | None:
    """The names of the skills that are for an agent: its own list, else that of the defaults; None: all."""
    agent = config.agents.find(agent_id)
    own = agent.skills if agent is not None else None
    listed = config.agents.defaults.skills if own is None else own
    return None if listed is None else frozenset(listed)


def _given(entry: Any) -> frozenset[str]:
    names = {name for name, value in entry.env.items() if value}
    return frozenset(names | {""} if entry.api_key else names)


def _looked_up(values: Any, path: str) -> Any:
    """What stands at a dotted path of plain configuration values; None where nothing does."""
    for key in path.split("."):
        values = values.get(key) if isinstance(values, Mapping) else None
    return values
