"""The rules of each account as the configuration has them, read into values that `core.access` decides by."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from garra.config.sections import Config
from garra.config.sections.channels import account_rules
from garra.core import access, forwarding, groups, loops
from garra.core.access import NOBODY, DmPolicy, GroupPolicy, People, Policy
from garra.core.forwarding import Native
from garra.core.value import frozen

log = logging.getLogger(__name__)

KEPT = 64

ALIASES: Mapping[str, Sequence[str]] = {"telegram": ("tg",)}
"""Other names that the owner's lists may call a channel by."""


_DM: Mapping[str, DmPolicy] = {"pairing": "pairing", "allowlist": "allowlist", "open": "open"}
_GROUP: Mapping[str, GroupPolicy] = {"open": "open", "disabled": "disabled"}


@frozen
class Account:
    """One account's rules. `raw` is what the file says of it, `policy` has nobody paired, `loop` holds between bots,
    `senders` are the keys of every `toolsBySender` that holds for all chats.
    """

    channel: str
    id: str
    raw: Mapping[str, Any]
    policy: Policy
    loop: loops.Settings
    groups_raw: Mapping[str, Any]
    senders: frozenset[str] = frozenset()

    @property
    def asking(self) -> Native:
        """Whether questions of agents are shown in its chats, which, and where."""
        return forwarding.native(self.raw.get("execApprovals"))

    def people(self, entries: Any) -> People:
        """A list of ids, as this account reads it."""
        return access.people(entries, self.channel, self.groups_raw, ALIASES.get(self.channel, ()))

    def group(self, chat: str, thread: str = "", parent: str = "", guild: str = "") -> groups.Group:
        """The rules of one of its groups."""
        found = groups.rules(self.raw, chat, thread, parent, guild=guild)
        return groups.group(found, held=groups.listed(self.raw, chat, parent, guild), people=self.people)


class Accounts:
    """The accounts' rules; read anew when the configuration changes."""

    def __init__(self, config: Callable[[], Config]) -> None:
        self._config = config
        self._of: Config | None = None
        self._kept: OrderedDict[tuple[str, str], Account] = OrderedDict()

    def find(self, channel: str, account: str) -> Account:
        """The rules of an account; a channel that the file does not name lets nobody into a group."""
        config = self._config()
        if config is not self._of:
            self._of = config
            self._kept.clear()
        found = self._kept.get((channel, account))
        if found is None:
            found = self._kept[channel, account] = read(config, channel, account)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found


def read(config: Config, channel: str, account: str) -> Account:
    """The rules of one account. What is absent or cannot be read is closed."""
    raw = account_rules(config.channels, channel, account)
    access_groups = config.access_groups
    aliases = ALIASES.get(channel, ())

    def people(key: str) -> People:
        return access.people(raw.get(key) or (), channel, access_groups, aliases)

    allow = people("allowFrom")
    group_allow = people("groupAllowFrom") if "groupAllowFrom" in raw else allow
    owners = access.owners(config.commands.get("ownerAllowFrom") or (), channel, aliases)
    dm, group = _DM.get(raw.get("dmPolicy") or "pairing"), _GROUP.get(raw.get("groupPolicy") or "allowlist")
    if channel not in config.channels:
        dm, group, allow, group_allow = "disabled", "disabled", NOBODY, NOBODY
    policy = Policy(
        dm=dm or "disabled",
        group=group or "allowlist",
        allow=allow,
        group_allow=group_allow,
        owners=owners,
        bots=groups.bots(raw.get("allowBots")),
        recorded=raw.get("contextVisibility") == "all",
        approvers=access.people(_asked(raw).get("approvers") or (), channel, access_groups, aliases),
    )
    _warn(raw, channel, account)
    tools = (config.tools, *(agent.tools for agent in config.agents.list))
    senders = frozenset(key for each in tools if each is not None for key in each.tools_by_sender)
    return Account(channel, account, raw, policy, _loop(raw), access_groups, senders)


def _asked(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """`execApprovals`: who answers in this account, and whether anybody is asked there."""
    found = raw.get("execApprovals")
    return found if isinstance(found, Mapping) else {}


def _warn(raw: Mapping[str, Any], channel: str, account: str) -> None:
    """Say what lets in more people, or fewer, than its owner may think."""
    names = [each for key in ("allowFrom", "groupAllowFrom") for each in raw.get(key) or () if str(each)[:1] == "@"]
    if names:
        log.warning(
            "channels.%s (%s): %s names nobody: write the platform's id (its owner sees it with /bot-me)",
            channel,
            account,
            ", ".join(map(str, names[:5])),
        )
    for line in forwarding.native_faults(_asked(raw)):
        log.warning("channels.%s (%s): execApprovals.%s; nobody is asked there", channel, account, line)
    if raw.get("dmPolicy") == "open" and access.ANYONE not in map(str, raw.get("allowFrom") or ()):
        log.warning("channels.%s (%s): dmPolicy open without * in allowFrom lets in the listed only", channel, account)


def _loop(raw: Mapping[str, Any]) -> loops.Settings:
    """`botLoopProtection`; figures that make no sense are the defaults."""
    given = raw.get("botLoopProtection")
    found = given if isinstance(given, Mapping) else {}

    def number(key: str, default: int) -> int:
        value = found.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default

    return loops.Settings(
        found.get("enabled") is not False,
        number("maxEventsPerWindow", 20),
        number("windowSeconds", 60) * 1000,
        number("cooldownSeconds", 60) * 1000,
    )
