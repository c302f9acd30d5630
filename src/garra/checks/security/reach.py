"""Who can write to the agent, and which tools it has there: what several checks ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from garra.checks.security.ground import Ground, listed
from garra.config.sections.channels import account_rules, accounts_of
from garra.core.access import NOBODY, People, people
from garra.core.ids import AgentId, SessionKey
from garra.core.policy import Face, Verdict, decide
from garra.core.value import frozen
from garra.domains.tools.pipeline import Scope
from garra.runs import rights

SHARED = "defaults"
"""The key below `channels` that is no channel."""


@frozen
class Account:
    """One chat account and its rules, by the keys of the file. `at` is where its own rules stand."""

    channel: str
    name: str
    at: tuple[str, ...]
    rules: Mapping[str, Any]
    allow: People = NOBODY
    group_allow: People = NOBODY

    @property
    def where(self) -> str:
        return ".".join(self.at)

    @property
    def anybody(self) -> bool:
        """Whether every stranger may write to it directly."""
        return self.rules.get("dmPolicy") != "disabled" and self.allow.anyone

    @property
    def any_group(self) -> bool:
        """Whether people whom the owner never named may speak to it in groups."""
        policy = self.rules.get("groupPolicy")
        return policy == "open" or (policy != "disabled" and (self.group_allow.anyone or self._one_group))

    @property
    def _one_group(self) -> bool:
        """Whether one of its groups lists everybody."""
        groups = self.rules.get("groups")
        rooms = groups.values() if isinstance(groups, Mapping) else ()
        return any(isinstance(room, Mapping) and "*" in listed(room.get("allowFrom")) for room in rooms)

    @property
    def names(self) -> tuple[str, ...]:
        """What of its lists is a name, and so lets nobody in."""
        every = (*listed(self.rules.get("allowFrom")), *listed(self.rules.get("groupAllowFrom")))
        return tuple(text for text in every if text.startswith("@") and ":" not in text)

    @property
    def open(self) -> bool:
        return self.anybody or self.any_group


def accounts(ground: Ground) -> Iterator[Account]:
    """Every account that is not switched off."""
    channels = ground.config.channels
    for channel, section in channels.items():
        if channel == SHARED:
            continue
        for name in accounts_of(section):
            rules = account_rules(channels, channel, name)
            own = ("accounts", name) if name in section.accounts else ()
            if rules.get("enabled") is not False:
                groups = ground.config.access_groups
                allow = people(rules.get("allowFrom") or (), channel, groups)
                speak = people(rules["groupAllowFrom"] or (), channel, groups) if "groupAllowFrom" in rules else allow
                yield Account(channel, name, ("channels", channel, *own), rules, allow, speak)


def strangers(ground: Ground) -> tuple[str, ...]:
    """The accounts to which strangers can write, by name."""
    return tuple(f"{one.channel}/{one.name}" for one in accounts(ground) if one.open)


def has(ground: Ground, agent_id: str, tool: str) -> bool:
    """Whether a group's turn of an agent would be offered a tool, as far as the lists of the configuration say."""
    scope = Scope(AgentId(agent_id), SessionKey(f"agent:{agent_id}:x:group:g"), "operator")
    return decide(Face(tool), rights.layers(ground.config, scope)).verdict is not Verdict.DENY
