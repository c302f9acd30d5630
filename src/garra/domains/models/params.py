"""What the owner set under `params`: for all models, a provider's, one model, an agent's use of it, an agent's whole.

Each of these counts more than the one before, key by key. `temperature`, `maxTokens` and `thinking` are Garra's to
read; the rest is the family's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from garra.core import thinking
from garra.core.value import replace
from garra.sdk.model import Level, Model, ModelRequest

if TYPE_CHECKING:
    from garra.config.sections.agents import Agents


def said(model: Model) -> Mapping[str, Any]:
    """As `sdk.exchange.params`, which loads with the first call."""
    told = model.compat.get("params")
    return told if isinstance(told, Mapping) else {}


def tuned(model: Model, agents: Agents, agent_id: str) -> Model:
    """`model` as agent `agent_id` uses it."""
    agent = agents.find(agent_id) if agent_id else None
    if agent is not None:
        own = agent.models.get(model.ref)
        model = _laid(model, {**(own.params if own is not None else {}), **agent.params})
    most = said(model).get("maxTokens")
    return replace(model, max_tokens=most) if _count(most) and most != model.max_tokens else model


def _laid(model: Model, more: Mapping[str, Any]) -> Model:
    return replace(model, compat={**model.compat, "params": {**said(model), **more}}) if more else model


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def warmed(request: ModelRequest) -> ModelRequest:
    """`request` with the owner's temperature, where the call names none."""
    warm = said(request.model).get("temperature")
    if request.temperature is not None or isinstance(warm, bool) or not isinstance(warm, int | float):
        return request
    return replace(request, temperature=float(warm))


def level(model: Model) -> Level | None:
    """How much this model thinks where nobody said; None where its `params` say nothing, or nothing that is known."""
    wanted = said(model).get("thinking")
    return thinking.level(wanted) if isinstance(wanted, str) else None
