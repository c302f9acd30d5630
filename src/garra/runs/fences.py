"""The fence of one session, from the configuration: who is shut in, with what, how far, and which ways lead out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from garra.config.paths import Paths
from garra.config.sections import Config
from garra.config.sections.sandbox import Docker, Egress, Sandbox
from garra.core import containers, fence, keys
from garra.core.containers import Container, Ground
from garra.core.fence import Access, Fence, Sharing
from garra.core.value import frozen
from garra.core.ways import Ways, way
from garra.sdk.tool import Origin

ENGINES = ("docker", "podman")


@frozen
class Whom:
    """Whose commands they are. `guest`: a person whom the owner did not let in by name, or a group."""

    agent_id: str
    session_key: str
    origin: Origin
    guest: bool = False


def of(config: Config, paths: Paths, whom: Whom) -> Fence:
    """The fence of a session."""
    common, own = config.agents.defaults.sandbox, _own(config, whom.agent_id)
    backend = own.backend or common.backend
    ways = _ways(common.egress, own.egress)
    made = Fence(_shut(config, whom), backend, _access(config, whom), ways=ways)
    if not (common.docker.binds or own.docker.binds or backend in ENGINES):
        return made
    shared = _sharing(common, own) == "shared"
    found = _contained(made, common.docker, Docker() if shared else own.docker, _ground(config, paths, whom))
    if found.container is None:
        return found
    whose = replace(found.container, scope=_scope(common, own, whom), session=whom.session_key)
    return replace(found, container=replace(whose, installation=installation(paths)))


def installation(paths: Paths) -> str:
    """What tells the containers of this gateway from those of another one on the same engine."""
    return hashlib.sha256(str(paths.state).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def backends(config: Config) -> tuple[str, ...]:
    """The container engines that any agent's commands are to run in."""
    agents = (agent.sandbox.backend for agent in config.agents.list)
    named = {config.agents.defaults.sandbox.backend, *agents}
    return tuple(each for each in ENGINES if each in named)


def read_only(config: Config, whom: Whom) -> bool:
    """Whether a session may read the workspace and not change it."""
    return _shut(config, whom) and _access(config, whom) == "ro"


def mode(config: Config, agent_id: str) -> fence.Mode:
    """`sandbox.mode` as it holds for an agent."""
    return _own(config, agent_id).mode or config.agents.defaults.sandbox.mode or "all"


def folder(config: Config, paths: Paths, whom: Whom) -> Path | None:
    """Where a session works instead of in its agent's workspace; None where it works there."""
    if _access(config, whom) != "none" or not _shut(config, whom):
        return None
    common, own = config.agents.defaults.sandbox, _own(config, whom.agent_id)
    root = own.workspace_root or common.workspace_root
    above = paths.expand(root) if root else paths.state / "sandboxes"
    return above / fence.folder(_sharing(common, own), whom.agent_id, whom.session_key)


def _shut(config: Config, whom: Whom) -> bool:
    common, own = config.agents.defaults.sandbox, _own(config, whom.agent_id)
    main = keys.is_main(whom.session_key, config.session.main_key)
    return fence.shut_in(own.mode or common.mode, main=main, origin=whom.origin, guest=whom.guest)


def _access(config: Config, whom: Whom) -> Access:
    return _own(config, whom.agent_id).workspace_access or config.agents.defaults.sandbox.workspace_access or "rw"


def _own(config: Config, agent_id: str) -> Sandbox:
    agent = config.agents.find(agent_id)
    return agent.sandbox if agent is not None else Sandbox()


def _sharing(common: Sandbox, own: Sandbox) -> Sharing:
    return own.scope or common.scope or "agent"


def _scope(common: Sandbox, own: Sandbox, whom: Whom) -> str:
    """For whom a container's setup is done once, as the original calls it."""
    sharing = _sharing(common, own)
    return "shared" if sharing == "shared" else whom.session_key if sharing == "session" else f"agent:{whom.agent_id}"


def _ways(common: Egress, own: Egress) -> Ways:
    texts = own.allow if own.allow is not None else common.allow or ()
    listed = tuple(found for text in texts if (found := way(text)) is not None)
    return Ways(listed, asks=(own.ask or common.ask or "on-miss") == "on-miss")


def _contained(made: Fence, common: Docker, own: Docker, ground: Ground) -> Fence:
    texts = (*common.binds, *own.binds)
    binds = [containers.bind(text) for text in texts]
    bad = [text for text, found in zip(texts, binds, strict=True) if found is None]
    good = {found.target: found for found in binds if found is not None}  # the last of a target counts
    fault = f"binds: {bad[0]!r} is not host:container[:ro|rw] of absolute paths" if bad else ""
    container = _container(common, own) if made.backend in ENGINES else None
    return Fence(made.shut_in, made.backend, made.access, tuple(good.values()), container, ground, fault, made.ways)


NAMES: Mapping[str, str] = {
    "image": "image", "container_prefix": "prefix", "network": "network", "user": "user",
    "read_only_root": "read_only_root", "tmpfs": "tmpfs", "cap_drop": "cap_drop", "env": "env",
    "pids_limit": "pids_limit", "memory": "memory", "memory_swap": "memory_swap", "cpus": "cpus", "gpus": "gpus",
    "seccomp_profile": "seccomp_profile", "apparmor_profile": "apparmor_profile", "dns": "dns",
    "extra_hosts": "extra_hosts", "setup_command": "setup",
}  # fmt: skip
"""The keys of the file, and what they are in a `Container`."""


def _container(common: Docker, own: Docker) -> Container:
    def said(name: str) -> Any:
        found = getattr(own, name)
        return getattr(common, name) if found is None else found

    given = {to: said(name) for name, to in NAMES.items() if said(name) is not None}
    return Container(**given, ulimits=tuple(_ulimits(said("ulimits") or {})))


def _ulimits(limits: Mapping[str, Any]) -> Iterator[str]:
    for name, value in limits.items():
        if isinstance(value, Mapping):
            yield f"{name}={value.get('soft', value.get('hard'))}:{value.get('hard', value.get('soft'))}"
        else:
            yield f"{name}={value}"


def _ground(config: Config, paths: Paths, whom: Whom) -> Ground:
    common, own = config.agents.defaults.sandbox.docker, _own(config, whom.agent_id).docker

    def allowed(name: str) -> bool:
        found: bool | None = getattr(own, name)
        return bool(getattr(common, name) if found is None else found)

    return Ground(
        str(paths.home),
        (str(paths.state), str(paths.config_file)),
        (str(paths.workspace(whom.agent_id, config)),),
        external=allowed("dangerously_allow_external_bind_sources"),
        reserved=allowed("dangerously_allow_reserved_container_targets"),
        join=allowed("dangerously_allow_container_namespace_join"),
    )
