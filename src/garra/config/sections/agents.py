"""`agents`: what all agents do by default, and the agents."""

import re
from functools import cached_property
from typing import Annotated, Any, Literal

from garra.config.sections.fields import BeforeValidator, Closed, Field, OpenSection, Section, part
from garra.config.sections.sandbox import Sandbox
from garra.config.sections.tools import Tools
from garra.core import sizes
from garra.core.thinking import Setting

MAIN = "main"


class ModelChoice(Section):
    """A model and those that take its place when it fails, each as `provider/model` or an alias."""

    primary: str = ""
    fallbacks: tuple[str, ...] | None = None


def _choice(value: Any) -> Any:
    return {"primary": value} if isinstance(value, str) else value


Choice = Annotated[ModelChoice, BeforeValidator(_choice)]


class ModelSettings(OpenSection):
    """What is set for one model, wherever it is used: a short name, request parameters."""

    alias: str = ""
    params: dict[str, Any] = Field(default_factory=dict)


class ModelPolicy(Section):
    """Which models may be chosen; empty means any."""

    allow: tuple[str, ...] = ()


Size = Annotated[int, BeforeValidator(sizes.count)]


class MemoryFlush(OpenSection):
    """The silent turn in which an agent saves what should outlast a summary. Sizes in tokens, and bytes (`2mb`)."""

    enabled: bool = True
    model: str = ""
    soft_threshold_tokens: int = Field(4_000, ge=0)
    force_flush_transcript_bytes: Size = Field(2 << 20, ge=0)


class Compaction(OpenSection):
    """When and how an old conversation is summed up. Sizes are in tokens, `maxActiveTranscriptBytes` in bytes."""

    enabled: bool = True
    mode: str = "default"
    reserve_tokens: int | None = Field(None, ge=0)
    reserve_tokens_floor: int | None = Field(None, ge=0)
    keep_recent_tokens: int | None = Field(None, ge=0)
    model: str = ""
    thinking_level: str = "low"
    timeout_seconds: float = Field(180.0, gt=0)
    notify_user: bool = False
    max_active_transcript_bytes: Size = Field(0, ge=0)
    memory_flush: MemoryFlush = part(MemoryFlush)


def _span(value: Any) -> Any:
    """`90s`, `5m`, `1h` as milliseconds; a bare number is minutes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*", str(value))
    if found is None or isinstance(value, bool):
        raise ValueError("write a time as 90s, 5m or 1h; a bare number is minutes")
    return int(float(found[1]) * SPANS[found[2] or "m"])


SPANS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Milliseconds."""


class PrunedTools(OpenSection):
    """Patterns of the tools whose old results may be sent in brief; a denial wins, no `allow` allows all."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class HardClear(OpenSection):
    """Whether whole results may go, and what then stands in their place."""

    enabled: bool = True
    placeholder: str = ""


class ContextPruning(OpenSection):
    """Old results of tools are sent in brief once the provider's cache is cold, which it is after `ttl` (`5m`)."""

    mode: Literal["off", "cache-ttl"] = "cache-ttl"
    ttl: Annotated[int, BeforeValidator(_span)] = Field("5m", validate_default=True)
    tools: PrunedTools = part(PrunedTools)
    hard_clear: HardClear = part(HardClear)


class StartupContext(OpenSection):
    """What a conversation that was begun anew is told of the diary: so many days, pages and characters."""

    enabled: bool = True
    apply_on: tuple[Literal["new", "reset"], ...] = ("new", "reset")
    daily_memory_days: int = Field(2, ge=0, le=14)
    max_file_bytes: int = Field(16_384, gt=0, le=1 << 20)
    max_file_chars: int = Field(1_200, gt=0, le=100_000)
    max_total_chars: int = Field(2_800, gt=0, le=100_000)


class Heartbeat(OpenSection):
    """The regular look-in: how often (`30m`, `0m` for never) and where it may speak."""

    every: str = ""
    model: str = ""
    target: str = ""
    prompt: str = ""
    active_hours: dict[str, Any] = Field(default_factory=dict)


class Subagents(OpenSection):
    """Helpers that an agent starts. Of one helper, `maxTokens` and `maxCostUsd` bound all its answers (0: no bound)."""

    allow_agents: tuple[str, ...] | None = None
    require_agent_id: bool = False
    model: Choice | None = None
    max_concurrent: int = Field(8, ge=1)
    max_children_per_agent: int = Field(5, ge=1)
    max_spawn_depth: int = Field(1, ge=1, le=5)
    archive_after_minutes: float = Field(60.0, ge=0)
    run_timeout_seconds: float | None = Field(None, ge=0)
    thinking: Setting | None = None
    max_tokens: int | None = Field(None, ge=0)
    max_cost_usd: float | None = Field(None, ge=0)


class HumanDelay(OpenSection):
    """The pause between two blocks of an answer: `natural` is 800 to 2500 ms, `custom` has its own ends."""

    mode: Literal["off", "natural", "custom"] = "off"
    min_ms: int | None = Field(None, ge=0)
    max_ms: int | None = Field(None, ge=0)


class Common(OpenSection):
    """What both the defaults and a single agent may set; `None` and empty mean: as the next wider scope says.

    `max_turns` answers of the model and `max_tool_calls` end a run (200 and 1,000 where nothing is said; 0: no limit).
    """

    workspace: str = ""
    cwd: str = ""
    utility_model: str | None = None
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    model_policy: ModelPolicy | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    skills: tuple[str, ...] | None = None
    thinking_default: Setting | None = None
    verbose_default: Literal["off", "on", "full"] | None = None
    reasoning_default: Literal["off", "on", "stream"] | None = None
    bootstrap_max_chars: int | None = Field(None, gt=0)
    bootstrap_total_max_chars: int | None = Field(None, gt=0)
    context_injection: Literal["always", "continuation-skip", "never"] | None = None
    heartbeat: Heartbeat | None = None
    subagents: Subagents = part(Subagents)
    sandbox: Sandbox = part(Sandbox)
    max_turns: int | None = Field(None, ge=0)
    max_tool_calls: int | None = Field(None, ge=0)
    human_delay: HumanDelay | None = None


class Defaults(Common):
    """What holds for every agent that does not say otherwise. Times are in seconds, sizes as named."""

    model: Choice = part(ModelChoice)
    startup_context: StartupContext = part(StartupContext)
    image_model: Choice | None = None
    image_max_dimension_px: int = Field(1200, ge=0)
    pdf_model: Choice | None = None
    pdf_max_mb: float = Field(10.0, gt=0)
    pdf_max_pages: int = Field(20, ge=1)
    user_timezone: str = ""
    time_format: Literal["auto", "12", "24"] = "auto"
    timeout_seconds: float = Field(600.0, ge=0)
    max_concurrent: int = Field(4, ge=1)
    media_max_mb: float = Field(5.0, gt=0)
    context_tokens: int | None = Field(None, gt=0)
    skip_bootstrap: bool = False
    compaction: Compaction = part(Compaction)
    context_pruning: ContextPruning = part(ContextPruning)
    elevated_default: Annotated[Literal["off", "on", "ask", "full"] | None, Closed("off")] = None

    @property
    def time_zone(self) -> str:
        """The owner's time zone, such as `Europe/Berlin`; empty means the machine's."""
        return self.user_timezone


class Identity(OpenSection):
    """How an agent presents itself."""

    name: str = ""
    theme: str = ""
    emoji: str = ""
    avatar: str = ""


class Agent(Common):
    """One agent; what it leaves out comes from the defaults."""

    id: str = ""
    name: str = ""
    default: bool = False
    model: Choice | None = None
    agent_dir: str = ""
    identity: Identity = part(Identity)
    group_chat: dict[str, Any] = Field(default_factory=dict)
    tools: Tools | None = None


class Agents(Section):
    """The agents: `list`, and `entries` keyed by id; both forms may be used, an id only once."""

    defaults: Defaults = part(Defaults)
    listed: tuple[Agent, ...] = Field((), alias="list")
    entries: dict[str, Agent] = Field(default_factory=dict)
    ownership: str = ""

    @cached_property
    def list(self) -> tuple[Agent, ...]:
        """Every agent of the file, in its order, each with its id; empty when none is declared."""
        keyed = (agent.model_copy(update={"id": key}) for key, agent in self.entries.items())
        return (*self.listed, *keyed)

    def find(self, agent_id: str) -> Agent | None:
        """The agent of this id, as declared."""
        return next((agent for agent in self.list if agent.id.lower() == agent_id.lower()), None)

    def default_id(self) -> str:
        """The agent that answers when nobody says which: the one marked default, else the first, else `main`."""
        agents = self.list
        chosen = next((agent for agent in agents if agent.default), agents[0] if agents else None)
        return chosen.id.lower() if chosen else MAIN

    def human_delay(self, agent_id: str) -> dict[str, Any]:
        """What holds for this agent, by the keys of the file; empty where nothing is set."""
        agent = self.find(agent_id)
        found = (agent.human_delay if agent else None) or self.defaults.human_delay
        return found.model_dump(by_alias=True, exclude_none=True) if found else {}

    def ids(self) -> tuple[str, ...]:
        """The ids of all agents, lower case; just `main` when none is declared."""
        return tuple(agent.id.lower() for agent in self.list) or (MAIN,)
