"""What stands behind `/new` and `/reset`: the model to go on with, and the first message of the new conversation."""

from __future__ import annotations

from typing import Final

from garra.config.sections import Config
from garra.core.errors import NotFound, UserError
from garra.core.ids import AgentId
from garra.turns.parts import Models

FAREWELL: Final = frozenset({"new", "reset"})

LISTED: Final = 20
"""Models that are named in one answer."""


def undoes(command: str, words: str) -> bool:
    """`/reset undo` goes back instead."""
    return command == "reset" and words.strip().lower() == "undo"


def opening(words: str, agent: AgentId, config: Config, models: Models) -> tuple[str, str]:
    """(model, message), both may be empty. A model is an alias or `provider/model` in front, or a provider's name that
    stands alone; all else is the message. Raises UserError for a model that may not be chosen.
    """
    first, rest = [*words.split(maxsplit=1), "", ""][:2]
    aliases = {own.alias.lower() for own in config.agents.defaults.models.values() if own.alias}
    if not first or (rest and "/" not in first and first.lower() not in aliases):
        return "", words
    try:
        model = models.resolve(first, agent).ref
    except NotFound:
        return "", words
    allow(config, model)
    return model, rest


def allow(config: Config, model: str) -> None:
    """Raises UserError where the owner keeps this model from being chosen."""
    allowed = config.agents.defaults.model_policy
    if allowed is not None and allowed.allow and model not in allowed.allow:
        raise UserError(f"The owner allows {', '.join(allowed.allow[:LISTED])} only.")
