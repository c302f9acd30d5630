"""Every method of this gateway, put together."""

from __future__ import annotations

from collections.abc import Iterable

from garra.gateway.method import Method, Registry
from garra.gateway.methods import (
    agent,
    agents,
    agents_files,
    chat,
    config,
    logs,
    models,
    sessions,
    sessions_change,
    sessions_say,
    sessions_watch,
    status,
    tools,
    waiting,
)

GROUPS: tuple[tuple[Method, ...], ...] = (
    agent.METHODS,
    agents.METHODS,
    agents_files.METHODS,
    chat.METHODS,
    config.METHODS,
    logs.METHODS,
    models.METHODS,
    sessions.METHODS,
    sessions_change.METHODS,
    sessions_say.METHODS,
    sessions_watch.METHODS,
    status.METHODS,
    tools.METHODS,
    waiting.METHODS,
)


def registry(*more: Iterable[Method]) -> Registry:
    """The table; `more` are rows of other parts."""
    return Registry.of(*GROUPS, *more)
