"""The whole configuration."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from garra.config.sections.agents import Agents
from garra.config.sections.channels import Channel
from garra.config.sections.fields import OpenSection, Section, SecretText
from garra.config.sections.gateway import Gateway
from garra.config.sections.models import Models
from garra.config.sections.plugins import Mcp, Plugins, Skills
from garra.config.sections.session import Messages, Session
from garra.config.sections.tools import Tools


class Logging(OpenSection):
    """The log of this program."""

    level: Literal["silent", "fatal", "error", "warn", "info", "debug", "trace"] = "info"
    console_level: str = ""
    file: str = ""
    max_file_bytes: int = Field(10 << 20, gt=0)
    max_days: int = Field(7, ge=1)


class Cron(OpenSection):
    """Scheduled work."""

    enabled: bool = True
    max_concurrent_runs: int | None = Field(None, ge=1)


class Hooks(OpenSection):
    """Requests from outside that start work, and hooks inside."""

    enabled: bool = False
    token: SecretText | None = None
    path: str = "/hooks"
    internal: dict[str, Any] = {}


class EnvSettings(OpenSection):
    """Variables for this program alone, used where the environment does not name them."""

    vars: dict[str, str] = {}


class Config(Section):
    """The whole configuration: every section has its defaults, so that an empty file is a valid one."""

    schema_: str = Field("", alias="$schema")
    meta: dict[str, Any] = {}
    wizard: dict[str, Any] = {}
    env: EnvSettings = EnvSettings()
    secrets: dict[str, Any] = {}
    auth: dict[str, Any] = {}
    logging: Logging = Logging()
    gateway: Gateway = Gateway()
    agents: Agents = Agents()
    bindings: tuple[dict[str, Any], ...] = ()
    models: Models = Models()
    tools: Tools = Tools()
    session: Session = Session()
    messages: Messages = Messages()
    channels: dict[str, Channel] = {}
    plugins: Plugins = Plugins()
    skills: Skills = Skills()
    mcp: Mcp = Mcp()
    cron: Cron = Cron()
    hooks: Hooks = Hooks()
    commands: dict[str, Any] = {}
    approvals: dict[str, Any] = {}
    memory: dict[str, Any] = {}
    browser: dict[str, Any] = {}
    ui: dict[str, Any] = {}
    talk: dict[str, Any] = {}
    tts: dict[str, Any] = {}
    discovery: dict[str, Any] = {}
    update: dict[str, Any] = {}
    telemetry: dict[str, Any] = {}
    diagnostics: dict[str, Any] = {}
    acp: dict[str, Any] = {}
    audio: dict[str, Any] = {}
    media: dict[str, Any] = {}
    broadcast: dict[str, Any] = {}
    worktree_root: str = ""
    worktree_acceleration: bool = True
    node_host: dict[str, Any] = {}
    security: dict[str, Any] = {}
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
