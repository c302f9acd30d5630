"""How commands are shut in, and what leads out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from garra.checks.security.finding import Finding, Severity, found
from garra.checks.security.ground import Ground, at, named
from garra.config.sections.sandbox import Sandbox
from garra.core.addresses import inner, own
from garra.core.containers import bind
from garra.core.ways import way

HOST_NETWORKS = ("host",)


def judge(ground: Ground) -> Iterator[Finding]:
    for where, mode in modes(ground).items():
        if mode == "off":
            yield found("sandbox.mode_off", f"{where}.sandbox.mode is off.")
        elif mode == "non-main":
            yield found("sandbox.mode_non_main", f"{where}.sandbox.mode is non-main.")
    if ground.mounts:
        yield found("sandbox.dangerous_bind_mount", f"{named(ground.mounts)}.")
    for where, section in _sections(ground):
        yield from _docker(where, section)
        if any(text.strip().split(":")[0] == "*" for text in section.egress.allow or ()):
            yield found("sandbox.egress_wildcard", f"{where}.sandbox.egress.allow has *.")
        near = [text for text in section.egress.allow or () if (to := way(text)) and to.exact and inner(to.host)]
        if near:
            worse: Severity = "warn" if any(own(to.host) for text in near if (to := way(text))) else "info"
            yield found("sandbox.egress_private", f"{where}.sandbox.egress.allow: {named(near)}.", worse)
    deep = ground.deep
    if deep is not None and deep.engine_fault:
        yield found("sandbox.engine_unavailable", f"{deep.engine}: {deep.engine_fault}")


def modes(ground: Ground) -> Mapping[str, str]:
    """`sandbox.mode` as it holds for all agents, and for each that says otherwise, by where it stands."""
    agents = ground.config.agents
    common = agents.defaults.sandbox.mode or "all"
    own = {f"agents.{agent.id.lower()}": agent.sandbox.mode or common for agent in agents.list}
    return {"agents.defaults": common, **{where: mode for where, mode in own.items() if mode != common}}


def _sections(ground: Ground) -> Iterator[tuple[str, Sandbox]]:
    yield "agents.defaults", ground.config.agents.defaults.sandbox
    for agent in ground.config.agents.list:
        yield f"agents.{agent.id.lower()}", agent.sandbox


def _docker(where: str, section: Sandbox) -> Iterator[Finding]:
    docker, place = section.docker, f"{where}.sandbox.docker"
    if section.mode == "off" and docker.model_fields_set:
        yield found("sandbox.docker_config_mode_off", f"{place} is set, {where}.sandbox.mode is off.")
    relative = [text for text in docker.binds if bind(text) is None]
    if relative:
        yield found("sandbox.bind_mount_non_absolute", f"{place}.binds: {named(relative)}.")
    network = (docker.network or "").strip().lower()
    if network in HOST_NETWORKS or network.startswith(("container:", "ns:")):
        yield found("sandbox.dangerous_network_mode", f"{place}.network is {docker.network}.")
    for name in ("seccomp", "apparmor"):
        if _unconfined(getattr(docker, f"{name}_profile"), name, docker.model_extra or {}):
            yield found(f"sandbox.dangerous_{name}_profile", f"{place} sets {name} to unconfined.")


def _unconfined(profile: str | None, name: str, more: Mapping[str, Any]) -> bool:
    options = at({"o": more}, "o.securityOpt") or ()
    joined = [str(option).replace(":", "=", 1).lower() for option in options] if isinstance(options, list) else []
    return (profile or "").strip().lower() == "unconfined" or f"{name}=unconfined" in joined
