"""`agents.….sandbox`: the fence around an agent's programs."""

from typing import Annotated, Any, Literal

from garra.config.sections.fields import BeforeValidator, Closed, Field, OpenSection, Section, part


def _text(value: Any) -> Any:
    """Engines take sizes and counts as text; files have them as numbers too."""
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


Amount = Annotated[str, BeforeValidator(_text)]


def _script(value: Any) -> Any:
    """Several commands are lines of one script, as long as each succeeds."""
    lines = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    return " &&\n".join(value) if lines else value


Script = Annotated[str, BeforeValidator(_script)]


class Docker(OpenSection):
    """How Docker or Podman makes a command's container. Unset keys of an agent are those of the defaults."""

    image: str | None = None
    container_prefix: str | None = None
    network: str | None = None
    user: str | None = None
    read_only_root: bool | None = None
    tmpfs: tuple[str, ...] | None = None
    cap_drop: tuple[str, ...] | None = None
    env: dict[str, str] | None = None
    pids_limit: int | None = Field(None, ge=1)
    memory: Amount | None = None
    memory_swap: Amount | None = None
    cpus: Amount | None = None
    ulimits: dict[str, Any] | None = None
    gpus: str | None = None
    seccomp_profile: str | None = None
    apparmor_profile: str | None = None
    dns: tuple[str, ...] | None = None
    extra_hosts: tuple[str, ...] | None = None
    setup_command: Script | None = None
    binds: tuple[str, ...] = ()
    dangerously_allow_external_bind_sources: bool | None = None
    dangerously_allow_reserved_container_targets: bool | None = None
    dangerously_allow_container_namespace_join: bool | None = None


class Egress(Section):
    """Which hosts an agent's commands may reach: `host`, `*.host`, `*`, with `:port` where that is not the web's."""

    allow: tuple[str, ...] | None = None
    ask: Annotated[Literal["off", "on-miss"] | None, Closed("off")] = None


class Sandbox(OpenSection):
    """The fence around an agent's programs."""

    mode: Annotated[Literal["off", "non-main", "all"] | None, Closed("all")] = None
    backend: str = ""
    scope: Annotated[Literal["session", "agent", "shared"] | None, Closed("session")] = None
    workspace_access: Annotated[Literal["none", "ro", "rw"] | None, Closed("none")] = None
    workspace_root: str = ""
    docker: Docker = part(Docker)
    egress: Egress = part(Egress)
