"""`budget`: what may be spent on models."""

from typing import Annotated, Literal

from garra.config.sections.fields import Closed, Field, Section, part


class Limit(Section):
    """At most so many tokens, and so many US dollars. 0 is no cap."""

    max_tokens: int = Field(0, ge=0)
    max_cost_usd: float = Field(0.0, ge=0)


class Each(Limit):
    """For each one over a `per`; `by_id` are the caps of single ones, which take the place of that for all."""

    per: Annotated[Literal["day", "month", "total"], Closed("total")] = "day"
    by_id: dict[str, Limit] = Field(default_factory=dict)


class Budget(Section):
    """Caps for one run with its sub-agents, for each conversation, sender, agent and job, and for everything in a day
    and a month. The owner is told at `warn_at` per cent. Days are those of `agents.defaults.userTimezone`.
    """

    run: Limit = part(Limit)
    session: Each = part(Each)
    sender: Each = part(Each)
    agent: Each = part(Each)
    job: Each = part(Each)
    day: Limit = part(Limit)
    month: Limit = part(Limit)
    warn_at: tuple[Annotated[int, Field(ge=1, le=100)], ...] = (50, 80, 100)
