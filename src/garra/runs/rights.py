"""Which tools a run may call: the configuration's layers in their order, as data for `core.policy`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from garra.config.sections import Config
from garra.config.sections.channels import account_rules
from garra.config.sections.tools import ToolPolicy
from garra.core import groups
from garra.core.policy import Layer, over_http, profile
from garra.domains.tools.pipeline import Scope

LITE = ("read", "write", "exec")
"""What a small local model is offered: each tool costs it seconds of reading."""


def layers(config: Config, scope: Scope) -> list[Layer]:
    """Profile, the provider's profile, global, global for the provider, then the same of the agent. Each narrows."""
    agent = config.agents.find(scope.agent_id)
    found = [*_of(config.tools, scope.provider, "tools")]
    if agent is not None and agent.tools is not None:
        found += _of(agent.tools, scope.provider, f"agents.{scope.agent_id}.tools")
    if scope.place is not None:
        found += placed(config, scope.place)
    if scope.surface == "http":
        found.append(_http(config))
    return found


def placed(config: Config, place: groups.Place) -> Sequence[Layer]:
    """What a group gets: little, unless the owner's settings of that group say more. A guest who writes directly gets
    that little: give him more by naming him in `allowFrom`.
    """
    if not place.group:
        return groups.tools((), place) if place.guest else ()
    account = account_rules(config.channels, place.channel, place.account)
    return groups.tools(groups.rules(account, place.chat, place.thread, place.parent, guild=place.guild), place)


def _of(tools: ToolPolicy, provider: str, source: str) -> Iterator[Layer]:
    by_provider = getattr(tools, "by_provider", {}).get(provider) if provider else None
    policies = [(tools, source)] + ([(by_provider, f"{source}.byProvider.{provider}")] if by_provider else [])
    for policy, name in policies:
        yield profile(policy.profile, policy.also_allow, f"{name}.profile")
    for policy, name in policies:
        yield Layer(name, policy.allow, policy.deny)


def _http(config: Config) -> Layer:
    """Over HTTP what runs, reads or writes is out of reach, unless the owner lists it (`gateway.tools.allow`)."""
    extra = (config.gateway.model_extra or {}).get("tools") or {}
    allow, deny = extra.get("allow") or (), extra.get("deny") or ()
    return Layer("gateway.tools", ("*",), tuple(name for name in HTTP if not over_http(name, allow=allow, deny=deny)))


HTTP = (
    "exec", "process", "spawn", "shell", "read", "write", "edit", "apply_patch", "ls", "find", "grep", "fs_write",
    "fs_delete", "fs_move", "sessions_spawn", "sessions_send", "automations", "cron", "gateway", "nodes",
)  # fmt: skip
