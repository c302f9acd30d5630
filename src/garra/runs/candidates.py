"""Which models may answer a turn, and by which login: the one that is meant, then those that take its place.

Whoever chose a model for this conversation or this turn by hand gets that one or a word why not, never another's
answer unasked. An agent with a model of its own has others behind it only where it names them itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from garra.config.sections import Config
from garra.core.errors import NotFound, UserError
from garra.domains.models.registry import Models
from garra.domains.sessions.session import Session
from garra.runs.run import Turn
from garra.sdk.model import Model

BY_HAND: Final = frozenset({"operator", "channel"})
PROFILE: Final = "authProfileOverride"
"""Under which name a session's entry has the login that a person chose for it."""


def candidates(models: Models, config: Config, turn: Turn, session: Session) -> tuple[Model, ...]:
    """The first is the one that is meant. One that cannot be found is passed over where another is there.

    Raises NotFound with a line for the person where none is.
    """
    found: list[Model] = []
    missing: list[UserError] = []
    for ref in _refs(config, turn, session):
        try:
            model = models.resolve(ref, turn.agent_id)
        except NotFound as error:
            missing.append(error)
            continue
        if model not in found:
            found.append(model)
    if not found:
        raise missing[0]
    return tuple(found)


def _refs(config: Config, turn: Turn, session: Session) -> Iterator[str | None]:
    chosen = turn.model or session.override
    yield chosen
    if chosen is not None and turn.origin in BY_HAND:
        return
    defaults = config.agents.defaults.model
    agent = config.agents.find(turn.agent_id)
    own = agent.model if agent else None
    if own is not None and own.fallbacks is not None:
        yield from own.fallbacks
        return
    if own is not None and own.primary and chosen is None:
        return
    yield from defaults.fallbacks or ()
    if chosen is not None and defaults.primary:
        yield defaults.primary


def profile(extra: Mapping[str, Any]) -> str:
    """The login that a person chose for a conversation; empty where none."""
    found = extra.get(PROFILE)
    return found if isinstance(found, str) else ""
