"""`models.list`: which models can be chosen."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.params import Name, Params
from garra.gateway.parts import ModelRow
from garra.gateway.rows import default_level, model_of, thinking

Profile = Annotated[str, Meta(min_length=1, max_length=256)]
AUTOMATIC = {"kind": "automatic", "label": "Automatic account selection"}


class ModelsList(Params, frozen=True):
    agent_id: Name | None = None
    session_key: Name | None = None
    auth_profile_id: Profile | None = None
    provider: Name | None = None
    include_details: bool = False
    include_provider_capabilities: bool = False
    include_default_models: bool = False
    prepared_only: bool = False
    refresh: bool = False
    view: Literal["default", "configured", "provider-config", "all"] = "default"


def model_rows(host: Host, agent_id: str, asked: ModelsList | None = None) -> list[dict[str, Any]]:
    """The models that can be chosen, as clients list them; the agent's own one is tagged `default`."""
    asked = asked or ModelsList()
    default = model_of(host.models, None, agent_id)
    ref = default.ref if default else None
    level = default_level(host.config, agent_id)
    rows = [
        row for row in host.models.rows() if asked.view == "all" or row.available or row.configured or row.ref == ref
    ]
    picked = [row for row in rows if asked.provider in (None, row.provider)]
    return [_row(row, chosen=row.ref == ref, level=level, details=asked.include_details) for row in picked]


def _row(row: ModelRow, *, details: bool, chosen: bool, level: str | None) -> dict[str, Any]:
    about = thinking(row, level)
    shown: dict[str, Any] = {
        "id": row.id,
        "name": row.name or row.id,
        "provider": row.provider,
        "reasoning": row.reasoning,
        "tags": ["default"] if chosen else [],
        "thinkingLevels": about["thinkingLevels"],
        "thinkingDefault": about["thinkingDefault"],
        "available": row.available,
    }
    return {**shown, "input": list(row.input), "contextWindow": row.context_window} if details else shown


async def models_list(host: Host, caller: Caller, params: ModelsList) -> dict[str, Any]:
    logins = host.more.get("logins")
    if params.refresh and logins is not None:
        await logins.refresh(params.provider or "")
    return {"models": model_rows(host, host.agent(params.agent_id), params), "accountSelection": AUTOMATIC}


METHODS: tuple[Method, ...] = (Method("models.list", READ, ModelsList, models_list, startup=True),)
