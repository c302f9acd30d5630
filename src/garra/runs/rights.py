"""Which tools a run may call: the configuration's layers in their order, as data for `core.policy`.

    profile → provider profile → global → global for the provider → agent → agent for the provider
    → group → sender → sandbox → sub-agent → inherited

Each only narrows. What is absent where somebody else than the owner speaks grants nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from garra.config.sections import Config
from garra.config.sections.agents import Agent
from garra.config.sections.channels import account_rules
from garra.config.sections.tools import ToolPolicy, Tools
from garra.core import groups
from garra.core.policy import (
    LEAF_DENIED,
    OVER_HTTP_DENIED,
    SANDBOX_ALLOWED,
    SANDBOX_DENIED,
    SUBAGENT_DENIED,
    Layer,
    Step,
    over_http,
    profile,
)
from garra.core.toolsearch import ROOM, Settings
from garra.domains.tools.pipeline import Scope

LITE = ("read", "write", "exec")
"""What a small local model is offered: each tool costs it seconds of reading."""

NOWHERE = groups.Place("", "", "", "", named=False)
"""The place of a turn that came from a chat nobody knows any more: that of a guest without a name."""


def layers(config: Config, scope: Scope) -> list[Layer]:
    """What each step says to this scope, in order; steps that do not concern it are left out."""
    agent = config.agents.find(scope.agent_id)
    if scope.agent_id not in config.agents.ids():
        return [Layer(f"there is no agent {scope.agent_id or '(empty)'}", (), step="agent")]
    place = scope.place or (NOWHERE if scope.origin == "channel" else None)
    found = [*_profiles(config, agent, scope), *_lists(config, agent, scope)]
    if place is not None:
        found += placed(config, place)
        found += _sender(config, agent, place)
    if boxed(config, scope):
        found.append(_sandbox(config, agent))
    if scope.depth:
        found += _subagent(config, agent, scope.depth)
    if scope.inherited is not None:
        found.append(Layer("what its parent had", scope.inherited, step="inherited"))
    if scope.surface == "http":
        found.append(_http(config))
    return found


def _profiles(config: Config, agent: Agent | None, scope: Scope) -> Iterator[Layer]:
    """The base: the agent's profile, else the profile of all; then the same for the model's provider."""
    named = [(agent.tools, f"agents.{scope.agent_id}.tools")] if agent is not None and agent.tools is not None else []
    chosen = next((each for each in named if _has_profile(each[0])), (config.tools, "tools"))
    yield profile(chosen[0].profile, chosen[0].also_allow, f"{chosen[1]}.profile", "profile")
    by_provider = [
        (policy, f"{source}.byProvider.{key}")
        for tools, source in (*named, (config.tools, "tools"))
        for key, policy in _provided(tools, scope)
        if _has_profile(policy)
    ]
    for policy, source in by_provider[:1]:
        yield profile(policy.profile, policy.also_allow, f"{source}.profile", "provider profile")


def _has_profile(policy: ToolPolicy) -> bool:
    return policy.profile is not None


def _provided(tools: Tools, scope: Scope) -> Iterator[tuple[str, ToolPolicy]]:
    """What is set for the model itself, then for its provider."""
    for key in (f"{scope.provider}/{scope.model}" if scope.model else "", scope.provider):
        if key and key in tools.by_provider:
            yield key, tools.by_provider[key]


def _lists(config: Config, agent: Agent | None, scope: Scope) -> Iterator[Layer]:
    yield _list(config.tools, "tools", "global")
    for key, policy in _provided(config.tools, scope):
        yield _list(policy, f"tools.byProvider.{key}", "global for the provider")
    if agent is not None and agent.tools is not None:
        name = f"agents.{scope.agent_id}.tools"
        yield _list(agent.tools, name, "agent")
        for key, policy in _provided(agent.tools, scope):
            yield _list(policy, f"{name}.byProvider.{key}", "agent for the provider")


def _list(policy: ToolPolicy, source: str, step: Step) -> Layer:
    return Layer(source, policy.allow, policy.deny, step=step)


def placed(config: Config, place: groups.Place) -> Sequence[Layer]:
    """What a group gets: little, unless the owner's settings of that group say more. A guest who writes directly gets
    that little: give him more by naming him in `allowFrom`.
    """
    if not place.group:
        return groups.tools((), place) if place.guest else ()
    account = account_rules(config.channels, place.channel, place.account)
    return groups.tools(groups.rules(account, place.chat, place.thread, place.parent, guild=place.guild), place)


def _sender(config: Config, agent: Agent | None, place: groups.Place) -> Iterator[Layer]:
    """`toolsBySender`: the agent's row for this person, else that for all agents; it gives nothing back that a group
    does not get.
    """
    own = [(agent.tools, f"agents.{agent.id}.tools")] if agent is not None and agent.tools is not None else []
    for tools, source in (*own, (config.tools, "tools")):
        key = groups.sender_key(tools.tools_by_sender, place)
        if key is not None:
            row = tools.tools_by_sender[key]
            allow = None if row.allow is None else (*row.allow, *row.also_allow)
            yield Layer(f"{source}.toolsBySender[{key}]", allow, row.deny, step="sender")
            return


def boxed(config: Config, scope: Scope) -> bool:
    """Whether the owner's `sandbox.mode` puts this session as a whole behind the fence."""
    agent = config.agents.find(scope.agent_id)
    mode = (agent.sandbox.mode if agent is not None else None) or config.agents.defaults.sandbox.mode
    if mode == "non-main":
        return scope.session_key != f"agent:{scope.agent_id}:{config.session.main_key}"
    return mode == "all"


def _sandbox(config: Config, agent: Agent | None) -> Layer:
    """`tools.sandbox.tools`: behind the fence little is offered unless the owner lists it."""
    own = agent.tools.sandbox.tools if agent is not None and agent.tools is not None else None
    policy, source = (own, f"agents.{agent.id}.tools") if own and agent else (config.tools.sandbox.tools, "tools")
    if policy is None:
        return Layer(f"{source}.sandbox.tools (not set)", SANDBOX_ALLOWED, SANDBOX_DENIED, step="sandbox")
    allow = (*(SANDBOX_ALLOWED if policy.allow is None else policy.allow), *policy.also_allow)
    spoken = {name.lower() for name in (*(policy.allow or ()), *policy.also_allow)}
    deny = policy.deny or tuple(name for name in SANDBOX_DENIED if name not in spoken)
    return Layer(f"{source}.sandbox.tools", allow, deny, step="sandbox")


def _subagent(config: Config, agent: Agent | None, depth: int) -> Iterator[Layer]:
    """A sub-agent speaks to nobody and starts no others below the deepest; then what the owner says of sub-agents."""
    own = agent.subagents if agent is not None else config.agents.defaults.subagents
    common = config.agents.defaults.subagents
    deepest = own.max_spawn_depth if "max_spawn_depth" in own.model_fields_set else common.max_spawn_depth
    denied = (*SUBAGENT_DENIED, *(LEAF_DENIED if depth >= deepest else ()))
    yield Layer("what no sub-agent has", None, denied, step="sub-agent")
    policy = config.tools.subagents.tools
    if policy is not None:
        allow = None if policy.allow is None else (*policy.allow, *policy.also_allow)
        yield Layer("tools.subagents.tools", allow, policy.deny, step="sub-agent")


def _http(config: Config) -> Layer:
    """Over HTTP what runs, reads or writes is out of reach, unless the owner lists it (`gateway.tools.allow`)."""
    names = config.gateway.tools
    closed = tuple(sorted(n for n in OVER_HTTP_DENIED if not over_http(n, allow=names.allow, deny=names.deny)))
    return Layer("gateway.tools", None, (*closed, *names.deny), step="surface")


def searching(config: Config, scope: Scope) -> Settings:
    """How large sets of tools are told to this scope's model: as its agent has it, else as all."""
    agent = config.agents.find(scope.agent_id)
    own = agent.tools if agent is not None else None
    tools = own if own is not None and "tool_search" in own.model_fields_set else config.tools
    found = tools.tool_search
    room = ROOM if found.direct_bytes is None else found.direct_bytes
    on = None if found.direct_bytes is not None and found.enabled else found.enabled
    return Settings(
        on, room, found.direct, min(found.search_default_limit, found.max_search_limit), found.max_search_limit
    )


def written(config: Config) -> Iterator[tuple[str, Sequence[str]]]:
    """Every list of tools in the configuration that holds for all, with its place, to look for what means nothing."""
    yield from _written("tools", config.tools)
    for agent in config.agents.list:
        if agent.tools is not None:
            yield from _written(f"agents.{agent.id}.tools", agent.tools)


def _written(source: str, tools: Tools) -> Iterator[tuple[str, Sequence[str]]]:
    inside: list[tuple[str, ToolPolicy | None]] = [(source, tools)]
    inside += [(f"{source}.byProvider.{key}", policy) for key, policy in tools.by_provider.items()]
    inside += [(f"{source}.toolsBySender[{key}]", policy) for key, policy in tools.tools_by_sender.items()]
    inside += [(f"{source}.sandbox.tools", tools.sandbox.tools), (f"{source}.subagents.tools", tools.subagents.tools)]
    for name, policy in inside:
        if policy is not None:
            for key, items in (("allow", policy.allow), ("alsoAllow", policy.also_allow), ("deny", policy.deny)):
                yield f"{name}.{key}", items or ()


def nameless(config: Config) -> Iterable[str]:
    """The rows of `toolsBySender` that hold for nobody, since a name is no reason for a right."""
    every = [("tools", config.tools), *((f"agents.{each.id}.tools", each.tools) for each in config.agents.list)]
    for source, tools in every:
        for key in tools.tools_by_sender if tools is not None else ():
            if key.partition(":")[0] in groups.NAMES:
                yield f"{source}.toolsBySender[{key}]"
