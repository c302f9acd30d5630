"""`plugins.entries.memory-core.config.dreaming`: whether the agent dreams by itself, and what it may keep."""

from collections.abc import Mapping
from typing import Any, Literal

from garra.config.sections.fields import Field, OpenSection, part
from garra.core.errors import UserError

PLUGIN = "memory-core"
PATH = f"plugins.entries.{PLUGIN}.config.dreaming"


class Deep(OpenSection):
    """What a line must reach to be proposed."""

    min_score: float = Field(0.75, ge=0, le=1)
    min_recall_count: int = Field(3, ge=0)
    min_unique_queries: int = Field(3, ge=0)
    recency_half_life_days: float = Field(14, gt=0)
    max_age_days: float = Field(30, gt=0)
    max_promoted_snippet_tokens: int = Field(160, ge=8, le=2_000)
    limit: int = Field(10, ge=1, le=100)


class Phases(OpenSection):
    """The phases that have settings."""

    deep: Deep = part(Deep)


class Dreaming(OpenSection):
    """`apply` is `ask` (a proposal waits for its owner) or `auto` (the owner's own lines come in at once). Without
    `model` no model is asked.
    """

    enabled: bool = False
    frequency: str = "0 3 * * *"
    timezone: str = ""
    model: str = ""
    apply: Literal["ask", "auto"] = "ask"
    phases: Phases = part(Phases)


def read(raw: Mapping[str, Any]) -> Dreaming:
    """From the plugin's free settings. Raises UserError with the key that is wrong."""
    given = raw.get("dreaming")
    try:
        return Dreaming.model_validate(given if isinstance(given, Mapping) else {})
    except ValueError as fault:  # pydantic's; the library is loaded only where something is wrong
        told: Any = fault
        first = told.errors()[0]
        where = ".".join(str(each) for each in first["loc"])
        raise UserError(f"{PATH}.{where}: {first['msg']}") from None
