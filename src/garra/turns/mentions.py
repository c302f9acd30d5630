"""The names that agents listen to in groups: `mentionPatterns`, else their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from garra.config.sections import Config
from garra.core.patterns import later

LOOKED: Final = 4_000
"""Characters of a message in which names are looked for."""

_NESTED = later(r"\([^)]*[*+}][^)]*\)\s*[*+{]")
"""A repetition of what repeats: it may take for ever."""


class Mentions:
    """Remembers the patterns of one configuration."""

    def __init__(self) -> None:
        self._of: Config | None = None
        self._all: tuple[re.Pattern[str], ...] = ()
        self._each: dict[str, tuple[re.Pattern[str], ...]] = {}

    def any(self, config: Config, text: str) -> bool:
        """Whether words call any agent."""
        self._read(config)
        return any(pattern.search(text[:LOOKED]) for pattern in self._all)

    def explicit(self, config: Config, agent_id: str, text: str) -> bool:
        """Whether words call this agent with an `@`; its name in a sentence is no call."""
        self._read(config)
        if agent_id not in self._each:
            self._each[agent_id] = tuple(_compiled(_own(config, agent_id)))
        looked = text[:LOOKED]
        return any(_at(looked, found) for pattern in self._each[agent_id] for found in pattern.finditer(looked))

    def _read(self, config: Config) -> None:
        if config is not self._of:
            self._of, self._all, self._each = config, tuple(_compiled(_every(config))), {}


def name(config: Config, agent_id: str) -> str:
    """What an agent is called in a chat."""
    agent = config.agents.find(agent_id)
    return (agent.identity.name or agent.name if agent else "") or agent_id


def _at(text: str, found: re.Match[str]) -> bool:
    return "@" in found[0] or text[found.start() - 1 : found.start()] == "@"


def _every(config: Config) -> list[str]:
    agents = config.agents.list
    own = [agent for agent in agents if "mentionPatterns" in agent.group_chat]
    texts = [text for agent in own for text in _texts(agent.group_chat["mentionPatterns"])]
    shared = config.messages.group_chat.get("mentionPatterns")
    if shared is not None:
        return [*texts, *_texts(shared)]
    names = [agent.identity.name for agent in agents if agent.identity.name]
    return texts if own else [*texts, *map(_word, names)]


def _own(config: Config, agent_id: str) -> Iterator[str]:
    """The patterns of one agent: its own, else those of all, and its names."""
    agent = config.agents.find(agent_id)
    own = agent.group_chat.get("mentionPatterns") if agent else None
    shared = config.messages.group_chat.get("mentionPatterns")
    yield from _texts(own if own is not None else shared)
    yield from map(_word, {agent_id, name(config, agent_id), agent.name if agent else ""} - {""})


def _word(name: str) -> str:
    return rf"(?<!\w)@?{re.escape(name)}(?!\w)"


def _texts(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else []


def _compiled(texts: Iterable[str]) -> Iterator[re.Pattern[str]]:
    for text in texts:
        if len(text) <= 200 and not _NESTED.search(text):
            try:
                yield re.compile(text, re.IGNORECASE)
            except re.error:
                continue
