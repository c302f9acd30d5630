"""The whole configuration."""

from typing import Any, Literal

from garra.config.sections.agents import Agents
from garra.config.sections.auth import Auth
from garra.config.sections.budget import Budget
from garra.config.sections.channels import Channel
from garra.config.sections.diagnostics import Diagnostics
from garra.config.sections.fields import Field, OpenSection, SecretText, Section, part
from garra.config.sections.gateway import Gateway
from garra.config.sections.memory import Memory
from garra.config.sections.models import Models
from garra.config.sections.plugins import Mcp, Plugins, Skills
from garra.config.sections.session import Messages, Session
from garra.config.sections.tools import Tools
from garra.config.sections.web import Browser


class Logging(OpenSection):
    """The log of this program. `file` takes the place of a file a day in the state folder; `console…` is what goes to
    standard error; `redactPatterns` are blotted out beside what is known to be secret.
    """

    level: Literal["silent", "fatal", "error", "warn", "info", "debug", "trace"] = "info"
    console_level: Literal["", "silent", "fatal", "error", "warn", "info", "debug", "trace"] = ""
    console_style: str = "pretty"
    file: str = ""
    max_file_bytes: int = Field(10 << 20, gt=0)
    max_days: int = Field(7, ge=1)
    redact_patterns: tuple[str, ...] = ()


class Cron(OpenSection):
    """Scheduled work."""

    enabled: bool = True
    max_concurrent_runs: int | None = Field(None, ge=1)


class Hooks(OpenSection):
    """Requests from outside that start work, and hooks inside."""

    enabled: bool = False
    token: SecretText | None = None
    path: str = "/hooks"
    internal: dict[str, Any] = Field(default_factory=dict)


class EnvSettings(OpenSection):
    """Variables for this program alone, used where the environment does not name them."""

    vars: dict[str, str] = Field(default_factory=dict)


class Config(Section):
    """The whole configuration: every section has its defaults, so that an empty file is a valid one."""

    schema_: str = Field("", alias="$schema")
    meta: dict[str, Any] = Field(default_factory=dict)
    wizard: dict[str, Any] = Field(default_factory=dict)
    env: EnvSettings = part(EnvSettings)
    secrets: dict[str, Any] = Field(default_factory=dict)
    auth: Auth = part(Auth)
    logging: Logging = part(Logging)
    gateway: Gateway = part(Gateway)
    agents: Agents = part(Agents)
    access_groups: dict[str, Any] = Field(default_factory=dict)
    bindings: tuple[dict[str, Any], ...] = ()
    models: Models = part(Models)
    tools: Tools = part(Tools)
    session: Session = part(Session)
    messages: Messages = part(Messages)
    channels: dict[str, Channel] = Field(default_factory=dict)
    plugins: Plugins = part(Plugins)
    skills: Skills = part(Skills)
    mcp: Mcp = part(Mcp)
    cron: Cron = part(Cron)
    budget: Budget = part(Budget)
    hooks: Hooks = part(Hooks)
    commands: dict[str, Any] = Field(default_factory=dict)
    approvals: dict[str, Any] = Field(default_factory=dict)
    memory: Memory = part(Memory)
    browser: Browser = part(Browser)
    ui: dict[str, Any] = Field(default_factory=dict)
    talk: dict[str, Any] = Field(default_factory=dict)
    tts: dict[str, Any] = Field(default_factory=dict)
    discovery: dict[str, Any] = Field(default_factory=dict)
    update: dict[str, Any] = Field(default_factory=dict)
    telemetry: dict[str, Any] = Field(default_factory=dict)
    diagnostics: Diagnostics = part(Diagnostics)
    acp: dict[str, Any] = Field(default_factory=dict)
    audio: dict[str, Any] = Field(default_factory=dict)
    media: dict[str, Any] = Field(default_factory=dict)
    broadcast: dict[str, Any] = Field(default_factory=dict)
    worktree_root: str = ""
    worktree_acceleration: bool = True
    node_host: dict[str, Any] = Field(default_factory=dict)
    security: dict[str, Any] = Field(default_factory=dict)
    proxy: str | dict[str, Any] | None = None
    ca_file: str = ""

    @property
    def time_zone(self) -> str:
        """The owner's time zone, such as `Europe/Berlin`; empty means the machine's."""
        return self.agents.defaults.user_timezone

    @property
    def proxy_url(self) -> str:
        """The proxy for what goes out; empty for none."""
        if isinstance(self.proxy, dict):
            return str(self.proxy.get("url") or "") if self.proxy.get("enabled", True) else ""
        return self.proxy or ""
