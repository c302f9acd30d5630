"""Can commands be shut in."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from garra.checks import engine
from garra.checks.finding import Finding, Ground
from garra.config.sections import Config
from garra.core.fence import Fence
from garra.domains.exec import fenced
from garra.runs import fences
from garra.runs.fences import Whom

KERNEL = Path("/sys/kernel/security/lsm")


def check(ground: Ground) -> list[Finding]:
    config = ground.snapshot.config
    if getattr(config.tools.exec, "host", "") == "gateway":
        what = "commands run on this machine without a sandbox (tools.exec.host is gateway)"
        return [Finding("sandbox", "warn", what, "tools.exec.host", "garra config unset tools.exec.host")]
    return [
        *_engine(config, ground.env),
        *(found for agent_id in config.agents.ids() for found in _agent(ground, agent_id)),
    ]


def _engine(config: Config, env: Mapping[str, str]) -> list[Finding]:
    backend = config.agents.defaults.sandbox.backend
    if backend in fences.ENGINES:
        where = "agents.defaults.sandbox.backend"
        if not (fault := engine.fault(backend, env)):
            return [Finding("sandbox", "ok", f"{backend} shuts commands in")]
        how = f"install and start {backend}, or garra config unset {where}"
        return [Finding("sandbox", "warn", f"no command runs: {backend}: {fault}", where, how)]
    if shutil.which("bwrap"):
        return [Finding("sandbox", "ok", "bubblewrap shuts commands in")]
    if sys.platform == "linux" and _landlock():
        how = "install bubblewrap for the stricter one (Debian, Ubuntu: apt install bubblewrap)"
        return [Finding("sandbox", "ok", "the kernel's landlock shuts commands in", "", how)]
    how = "install bubblewrap (Debian, Ubuntu: apt install bubblewrap)"
    return [Finding("sandbox", "warn", "no sandbox: commands are refused, or asked about at a terminal", "", how)]


def _agent(ground: Ground, agent_id: str) -> Iterator[Finding]:
    """What the owner has opened for one agent, and what of his settings stops its commands."""
    config, where = ground.snapshot.config, f"agents ({agent_id}).sandbox"
    match fences.mode(config, agent_id):
        case "off":
            how = "set sandbox.mode to all, or to non-main"
            what = f"commands of the agent {agent_id} run on this machine, those of groups and guests too (mode off)"
            yield Finding("sandbox", "warn", what, f"{where}.mode", how)
        case "non-main":
            what = f"commands of the agent {agent_id} in its own conversation run on this machine (mode non-main)"
            yield Finding("sandbox", "note", what, f"{where}.mode", "set sandbox.mode to all to shut them in")
        case "all":
            pass
    made = fences.of(config, ground.paths, Whom(agent_id, f"agent:{agent_id}:main", "operator"))
    if fault := made.fault or next(fenced.faults(made), ""):
        yield Finding("sandbox", "warn", f"no command of the agent {agent_id} runs: {fault}", f"{where}.docker")
    if made.ways.listed and (how := _no_way_out(made)):
        what = f"egress.allow of the agent {agent_id} opens nothing: {how}"
        fix = "install bubblewrap (Debian, Ubuntu: apt install bubblewrap)"
        yield Finding("sandbox", "warn", what, f"{where}.egress.allow", fix)
    if any(way.host == "*" for way in made.ways.listed):
        what = f"commands of the agent {agent_id} reach every public host (egress.allow has *)"
        yield Finding("sandbox", "note", what, f"{where}.egress.allow", "list the hosts that are needed")


def _no_way_out(made: Fence) -> str:
    """Why no way leads out of an agent's sandbox to the hosts that are listed; empty where one does."""
    if made.container is not None:
        return f"in containers docker.network opens all or nothing (it is {made.container.network})"
    if made.backend == "landlock" or not shutil.which("bwrap"):
        return "under landlock alone no way leads out of a sandbox, and its network is off"
    return ""


def _landlock() -> bool:
    try:
        return "landlock" in KERNEL.read_text()
    except OSError:
        return False
