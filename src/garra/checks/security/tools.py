"""What the agent may do without a question, and with which programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from garra.checks.security.finding import Finding, Severity, found
from garra.checks.security.ground import Ground, named
from garra.checks.security.reach import has, strangers
from garra.checks.security.sandbox import modes
from garra.config.sections.tools import Elevated, ExecTool
from garra.core.addresses import inner, own
from garra.core.execrules import MODES, Entry
from garra.core.programs import PROFILES, USUAL, can_do_anything

MANY = 25
BROAD = frozenset(
    (
        "sort",
        "jq",
        "awk",
        "gawk",
        "mawk",
        "sed",
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "find",
        "tee",
        "xxd",
        "split",
        "csplit",
        "yq",
    )
)
SYSTEM = ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin")


def judge(ground: Ground) -> Iterator[Finding]:
    yield from _elevated(ground.config.tools.elevated)
    for where, section in execs(ground):
        yield from _exec(ground, where, section)
    yield from _rules(ground)
    yield from _files(ground)
    tools = ground.config.tools
    if tools.taint.mode == "off":
        yield found("tools.taint_off", "tools.taint.mode is off.")
    minimal = [
        a.id for a in ground.config.agents.list if a.tools is not None and a.tools.profile not in (None, "minimal")
    ]
    if tools.profile == "minimal" and minimal:
        yield found("tools.profile_minimal_overridden", f"Agents: {named(minimal)}.")


def execs(ground: Ground) -> Iterator[tuple[str, ExecTool]]:
    """Every place that says how commands run."""
    yield "tools.exec", ground.config.tools.exec
    for agent in ground.config.agents.list:
        if agent.tools is not None and "exec" in agent.tools.model_fields_set:
            yield f"agents.{agent.id.lower()}.tools.exec", agent.tools.exec


def unasked(section: ExecTool) -> bool:
    """Whether a place lets any command run on the machine without a question."""
    security, ask = MODES[section.mode] if section.mode else (section.security, section.ask)
    return security == "full" and (section.ask or ask or "on-miss") == "off" and section.security in (None, "full")


def _elevated(elevated: Elevated) -> Iterator[Finding]:
    if not elevated.enabled and "enabled" in elevated.model_fields_set:
        return
    for channel, people in elevated.allow_from.items():
        if "*" in people:
            armed = "" if elevated.enabled else ", which counts as soon as tools.elevated.enabled is true"
            detail = f"tools.elevated.allowFrom.{channel} has *{armed}."
            worse: Severity = "critical" if elevated.enabled else "warn"
            yield found("tools.elevated.allowFrom.<channel>.wildcard", detail, worse, of=channel)
        elif len(people) > MANY:
            detail = f"tools.elevated.allowFrom.{channel} has {len(people)} entries."
            yield found("tools.elevated.allowFrom.<channel>.large", detail, of=channel)


def _exec(ground: Ground, where: str, section: ExecTool) -> Iterator[Finding]:
    if unasked(section):
        worse: Severity = "critical" if strangers(ground) else "warn"
        yield found("tools.exec.security_full_configured", f"{where} is security full, ask off.", worse)
    if section.host == "sandbox":
        yield from _nowhere(ground, where)
    yield from _filters(where, section.safe_bins or (), section)
    risky = [
        folder
        for folder in section.safe_bin_trusted_dirs
        if folder.rstrip("/") not in SYSTEM and _risky(ground, folder)
    ]
    if risky:
        yield found("tools.exec.safe_bin_trusted_dirs_risky", f"{where}.safeBinTrustedDirs: {named(risky)}.")


def _risky(ground: Ground, folder: str) -> bool:
    """Not by a full path, in a home or a folder for everybody, or such that others may write there."""
    plain = folder.rstrip("/")
    homes = ("/tmp", "/var/tmp", "/home", "/Users", "/dev/shm", "/opt/homebrew", ground.home or "/root")
    inside = any(plain == home or plain.startswith(f"{home}/") for home in homes)
    return not plain.startswith("/") or inside or folder in ground.loose


def _nowhere(ground: Ground, where: str) -> Iterator[Finding]:
    sandboxes = modes(ground)
    if where == "tools.exec":
        if sandboxes["agents.defaults"] == "off":
            detail = "tools.exec.host is sandbox, agents.defaults.sandbox.mode is off."
            yield found("tools.exec.host_sandbox_no_sandbox_defaults", detail)
        return
    agent = where.removesuffix(".tools.exec")
    if sandboxes.get(agent, sandboxes["agents.defaults"]) == "off":
        detail = f"{where}.host is sandbox, its sandbox.mode is off."
        yield found("tools.exec.host_sandbox_no_sandbox_agents", detail)


def _filters(where: str, names: Sequence[str], section: ExecTool) -> Iterator[Finding]:
    own = section.safe_bin_profiles
    loose = [name for name in names if name not in USUAL and name not in own]
    anything = [name for name in loose if can_do_anything(name) and name not in BROAD]
    if anything:
        yield found("tools.exec.safe_bins_interpreter_unprofiled", f"{where}.safeBins: {named(anything)}.")
    broad = [name for name in loose if name in BROAD and name not in PROFILES]
    broad += [name for name in loose if name == "sort"]
    if broad:
        yield found("tools.exec.safe_bins_broad_behavior", f"{where}.safeBins: {named(broad)}.")


def _rules(ground: Ground) -> Iterator[Finding]:
    if ground.rules is None:
        yield found("tools.exec.approvals_broken", "It is no such document.")
        return
    sources = {"defaults": ground.rules.defaults, **ground.rules.agents}
    loose = [entry.pattern for policy in sources.values() for entry in policy.allowlist if _anything(entry)]
    if loose:
        yield found("tools.exec.allowlist_interpreter", f"Without arguments: {named(loose)}.")


def _anything(entry: Entry) -> bool:
    name = entry.pattern.rsplit("/", 1)[-1]
    return not entry.arg_pattern and (name in {"*", "**"} or can_do_anything(name))


def _near(where: str, listed: Sequence[str]) -> Iterator[Finding]:
    """Hosts of this machine, or of its network, that pages may lead to."""
    near = [host for host in listed if inner(host)]
    if near:
        worse: Severity = "warn" if any(map(own, near)) else "info"
        yield found("tools.web.private_hosts", f"{where}: {named(near)}.", worse)


def _files(ground: Ground) -> Iterator[Finding]:
    config = ground.config
    if not config.tools.fs.workspace_only:
        yield found("tools.fs.workspace_only_off", "tools.fs.workspaceOnly is false.")
    for at, policy in (
        ("tools.web.fetch", config.tools.web.fetch.ssrf_policy),
        ("browser", config.browser.ssrf_policy),
    ):
        if policy.dangerously_allow_private_network:
            yield found("tools.web.private_network", f"{at}.ssrfPolicy.dangerouslyAllowPrivateNetwork is true.")
        yield from _near(f"{at}.ssrfPolicy.allowedHostnames", policy.allowed_hostnames)
    for agent_id in config.agents.ids():
        denied = not has(ground, agent_id, "write") and not has(ground, agent_id, "edit")
        own = config.agents.find(agent_id)
        access = (own.sandbox.workspace_access if own else None) or config.agents.defaults.sandbox.workspace_access
        reads = has(ground, agent_id, "read")
        if denied and reads and has(ground, agent_id, "exec") and access not in ("ro", "none"):
            detail = f"The agent {agent_id} has exec and neither write nor edit."
            yield found("tools.exec.fs_tools_disabled_but_exec_enabled", detail)
