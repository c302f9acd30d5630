"""`plugins`, `skills`, `mcp`: what is added to the box."""

from typing import Any, Literal

from garra.config.sections.fields import Field, OpenSection, SecretText, Section, part


class PluginEntry(OpenSection):
    """One plugin: on or off, its own settings, which hooks it may use."""

    enabled: bool | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    hooks: dict[str, Any] = Field(default_factory=dict)


class Slots(Section):
    """Places that exactly one plugin fills; `none` leaves a place empty, absence means the one in the box."""

    memory: str | None = None
    context_engine: str | None = None


class PluginLoad(Section):
    """Folders to look for plugins in, beside the usual ones."""

    paths: tuple[str, ...] = ()


class Plugins(Section):
    """Which plugins are loaded; a denial wins, a non-empty `allow` is exclusive."""

    enabled: bool = True
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    load: PluginLoad = part(PluginLoad)
    slots: Slots = part(Slots)
    entries: dict[str, PluginEntry] = Field(default_factory=dict)
    installs: dict[str, Any] = Field(default_factory=dict)


class SkillEntry(OpenSection):
    """One skill: on or off, its key and variables."""

    enabled: bool = True
    api_key: SecretText | None = None
    env: dict[str, SecretText] = Field(default_factory=dict)
    config: dict[str, Any] = Field(default_factory=dict)


class SkillLoad(OpenSection):
    """Where skills are looked for, and whether changes are watched."""

    extra_dirs: tuple[str, ...] = ()
    watch: bool = True


class Skills(OpenSection):
    """Skills, by name."""

    allow_bundled: tuple[str, ...] | None = None
    load: SkillLoad = part(SkillLoad)
    entries: dict[str, SkillEntry] = Field(default_factory=dict)
    limits: dict[str, Any] = Field(default_factory=dict)


class McpServer(OpenSection):
    """One MCP server: a program (`command`) or an address (`url`). Times are in milliseconds."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, SecretText] = Field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    transport: Literal["stdio", "sse", "streamable-http", "http"] | None = None
    headers: dict[str, SecretText] = Field(default_factory=dict)
    enabled: bool = True
    connection_timeout_ms: int | None = Field(None, gt=0)


class Mcp(OpenSection):
    """The MCP servers whose tools the agent gets, by name."""

    servers: dict[str, McpServer] = Field(default_factory=dict)
