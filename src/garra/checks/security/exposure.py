"""What comes together: strangers on one side, rights on the other; and who shares one gateway."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.security.finding import Finding, found
from garra.checks.security.ground import Ground, named
from garra.checks.security.reach import has, strangers
from garra.checks.security.sandbox import modes
from garra.checks.security.tools import execs, unasked

RUNTIME = ("exec", "process", "read", "write", "edit", "apply_patch")
CONTROL = frozenset({"gateway", "automations", "cron", "plugins", "group:automation"})


def judge(ground: Ground) -> Iterator[Finding]:
    who = strangers(ground)
    if who:
        yield from _rights(ground, named(who))
        detail = f"Strangers may write to {named(who)}."
        yield found("security.trust_model.multi_user_heuristic", detail)
    if ground.config.session.group_scope == "main":
        yield found("security.trust_model.group_scope_main", "session.groupScope is main.")


def _rights(ground: Ground, who: str) -> Iterator[Finding]:
    elevated = ground.config.tools.elevated
    if elevated.enabled and any(elevated.allow_from.values()):
        detail = f"Strangers may write to {who}, and tools.elevated is on."
        yield found("security.exposure.open_groups_with_elevated", detail)
    yield from _runtime(ground, who)
    hosted = [(where, section) for where, section in execs(ground) if section.host == "gateway"]
    if hosted and any(has(ground, agent, "exec") for agent in ground.config.agents.ids()):
        worse = any(unasked(section) for _, section in hosted)
        detail = f"Strangers may write to {who}, and {hosted[0][0]}.host is gateway."
        yield found("security.exposure.open_channels_with_exec", detail, "critical" if worse else "warn")
    control = sorted(CONTROL & set(_allowed(ground)))
    if control:
        detail = f"Strangers may write to {who}, and {named(control)} is allowed by name."
        yield found("security.exposure.open_groups_with_control_plane_tools", detail)


def _runtime(ground: Ground, who: str) -> Iterator[Finding]:
    sandboxes = modes(ground)
    for agent in ground.config.agents.ids():
        free = sandboxes.get(f"agents.{agent}", sandboxes["agents.defaults"]) == "off"
        reached = [tool for tool in RUNTIME if has(ground, agent, tool)]
        wide = not ground.config.tools.fs.workspace_only and any(tool not in ("exec", "process") for tool in reached)
        if reached and (free or wide):
            why = "sandbox.mode is off" if free else "file tools may leave the workspace"
            detail = f"Strangers may write to {who}; the agent {agent} has {named(reached)}, and {why}."
            yield found("security.exposure.open_groups_with_runtime_or_fs", detail)
            return


def _allowed(ground: Ground) -> Iterator[str]:
    every = [ground.config.tools, *(agent.tools for agent in ground.config.agents.list if agent.tools is not None)]
    for tools in every:
        yield from (*(tools.allow or ()), *tools.also_allow)
