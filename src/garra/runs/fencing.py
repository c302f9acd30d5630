"""What holds for the commands of a session, told: shut in or not, with what, how far, and what leads out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core.containers import Container
from garra.core.errors import NotFound
from garra.core.keys import agent_of, canonical, is_main
from garra.domains.exec.fenced import faults
from garra.runs import fences
from garra.runs.fences import Whom


def told(config: Config, paths: Paths, session: str = "", agent: str = "") -> dict[str, Any]:
    """As `sandbox explain --json` has it. A session that is no agent's own is taken for one of a group or guest, which
    is shut in where any is. Blocks. Raises NotFound for an agent that is not there.
    """
    wanted = (agent or config.agents.default_id()).lower()
    key = canonical(session or "main", wanted, config.session.main_key)
    owner = agent_of(key, wanted)
    if owner not in config.agents.ids():
        raise NotFound(f'unknown agent id "{owner[:64]}"; there is: {", ".join(config.agents.ids())}')
    main = is_main(key, config.session.main_key)
    whom = Whom(owner, key, "operator" if main else "channel", guest=not main)
    fence = fences.of(config, paths, whom)
    apart = fences.folder(config, paths, whom)
    elevated = config.tools.elevated
    backend = fence.backend or ("bwrap" if shutil.which("bwrap") else "landlock")
    return {
        "agentId": owner,
        "sessionKey": key,
        "mainSessionKey": canonical("main", owner, config.session.main_key),
        "sandbox": {
            "mode": fences.mode(config, owner),
            "backend": backend,
            "workspaceAccess": fence.access,
            "workspaceRoot": str(paths.state / "sandboxes"),
            "effectiveHostWorkspaceRoot": str(apart or paths.workspace(owner, config)),
            "sessionIsSandboxed": fence.shut_in,
            "egress": {
                "allow": [f"{way.host}:{way.port}" if way.port else way.host for way in fence.ways.listed],
                "ask": "on-miss" if fence.ways.asks else "off",
                "leadsOut": backend == "bwrap",
            },
            "binds": [f"{bind.source}:{bind.target}{'' if bind.writable else ':ro'}" for bind in fence.binds],
            "container": _container(fence.container),
            "fault": fence.fault or next(faults(fence), None),
        },
        "host": config.tools.exec.host,
        "elevated": {"enabled": elevated.enabled, "channels": sorted(elevated.allow_from)},
        "fixIt": [
            "agents.defaults.sandbox.mode",
            "agents.defaults.sandbox.workspaceAccess",
            "agents.defaults.sandbox.egress.allow",
            "tools.exec.host",
            "tools.elevated.enabled",
        ],
    }


def _container(made: Container | None) -> dict[str, Any] | None:
    if made is None:
        return None
    return {
        "image": made.image,
        "network": made.network,
        "user": made.user or None,
        "readOnlyRoot": made.read_only_root,
        "capDrop": list(made.cap_drop or ("ALL",)),
        "pidsLimit": made.pids_limit,
        "memory": made.memory or None,
        "cpus": made.cpus or None,
        "env": sorted(made.env),
        "setupCommand": bool(made.setup),
        "scope": made.scope,
        "configHash": made.digest,
    }


def rows(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The same for people: what, and how it is."""
    box, egress = told["sandbox"], told["sandbox"]["egress"]
    yield "session", f"{told['sessionKey']} (agent {told['agentId']})"
    on_host = told["host"] == "gateway"
    shut = "on this machine (tools.exec.host is gateway)" if on_host else "in a sandbox of their own each"
    yield "its commands run", shut if on_host or box["sessionIsSandboxed"] else "on this machine (sandbox.mode)"
    yield "sandbox.mode", box["mode"]
    yield "sandbox.backend", box["backend"]
    yield "workspace", f"{box['effectiveHostWorkspaceRoot']} ({box['workspaceAccess']})"
    out = ", ".join(egress["allow"]) or "no host"
    if egress["leadsOut"]:
        yield "may reach", f"{out}{'; a person is asked about others' if egress['ask'] == 'on-miss' else ''}"
    else:
        network = (box["container"] or {}).get("network", "none")
        only = "no host: only bubblewrap can lead out to listed ones (apt install bubblewrap)"
        yield "may reach", only if network == "none" else f"what the network {network} reaches (docker.network)"
    if box["binds"]:
        yield "also sees", ", ".join(box["binds"])
    if made := box["container"]:
        setup = ", after docker.setupCommand" if made["setupCommand"] else ""
        yield "container", f"{made['image']}, network {made['network']}{setup}, for {made['scope']}"
    if box["fault"]:
        yield "nothing runs", box["fault"]
    elevated = told["elevated"]
    yield "elevated", f"on, from {', '.join(elevated['channels']) or 'no chat'}" if elevated["enabled"] else "off"
    yield "to change it", ", ".join(told["fixIt"])
