"""Who is let in: one function that every event of every channel passes.

Absent means closed. A person is the platform's immutable id, equal to the letter; a name never lets anybody in. What
opens direct messages (a pairing) opens no group. The turn kernel takes nothing but `Admitted`, and only this module
makes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from garra.core.value import frozen

DmPolicy = Literal["pairing", "allowlist", "open", "disabled"]
GroupPolicy = Literal["open", "allowlist", "disabled"]
Bots = Literal["none", "mentions", "all"]


ANYONE = "*"
GROUP_MARK = "accessGroup:"
STARTS = frozenset(("message", "button"))
"""The events that may start a turn; the others are noted and no more."""

_SEAL = object()


@frozen
class People:
    """A list of ids. `anyone`: a star was written in full."""

    ids: frozenset[str] = frozenset()
    anyone: bool = False

    def names(self, sender: str) -> bool:
        """Whether it lists this very id."""
        return bool(sender) and sender in self.ids

    def holds(self, sender: str) -> bool:
        return bool(sender) and (self.anyone or sender in self.ids)


NOBODY = People()


@frozen
class Policy:
    """The rules of one account. `allow` and `group_allow` are the owner's lists, `paired` those approved by code,
    `owners` may give commands that change the installation. `approvers` alone answer what agents ask, where there are
    any; else the owners do. `recorded`: words of people who may not write to the bot in
    a group are kept as its history.
    """

    dm: DmPolicy = "pairing"
    group: GroupPolicy = "allowlist"
    allow: People = NOBODY
    group_allow: People = NOBODY
    paired: People = NOBODY
    owners: People = NOBODY
    bots: Bots = "none"
    recorded: bool = False
    approvers: People = NOBODY

    @property
    def answering(self) -> People:
        """Who answers what agents ask."""
        return self.approvers if self.approvers.ids else self.owners


@frozen
class Room:
    """A group as the rules have it (see `core.groups`). `listed`: the owner's list of groups has it, or there is none.
    `allow` None: the account's list of people counts. Who has one of `roles` may speak in it, as a guest.
    """

    listed: bool = False
    enabled: bool = True
    mention: bool = True
    allow: People | None = None
    bots: Bots | None = None
    roles: frozenset[str] = frozenset()


@frozen
class Facts:
    """What is known of one event. `mentioned`: the bot was addressed. `command`: it is one of the bot's commands.
    `room` is None for direct messages.
    """

    event: str
    sender: str
    chat: str
    mentioned: bool = False
    command: bool = False
    own: bool = False
    bot: bool = False
    room: Room | None = None
    roles: tuple[str, ...] = ()


@frozen
class Admitted:
    """Somebody who was let in. `named`: by the owner's lists or a pairing, not by a star or an open group; such a
    person may change the session. `owner` may change the installation, `approver` answer what agents ask. Only `judge`
    makes one.
    """

    sender: str
    chat: str
    direct: bool
    named: bool
    owner: bool
    bot: bool
    seal: object = field(repr=False, compare=False, default=None)
    approver: bool = False

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise TypeError("only core.access admits")


@frozen
class Dispatch:
    """It may start a turn."""

    admitted: Admitted


@frozen
class Observe:
    """It starts nothing; the next turn of its group may read it."""

    reason: str


@frozen
class Handled:
    """It is noted; it is of no kind that starts a turn."""

    reason: str


@frozen
class Drop:
    """It ends here. `knock`: a stranger wrote directly where a pairing code may be asked for."""

    reason: str
    knock: bool = False


Verdict = Dispatch | Observe | Handled | Drop


def judge(policy: Policy, facts: Facts) -> Verdict:
    """What becomes of one event."""
    if facts.own:
        return Drop("own")
    if facts.event not in STARTS:
        return Handled(f"event-{facts.event}")
    if not facts.sender:
        return Drop("no-sender-id")
    if facts.room is None:
        return _direct(policy, facts)
    return _group(policy, facts, facts.room)


REFUSALS = frozenset(
    (
        "no-sender-id",
        "dm-disabled",
        "dm-not-listed",
        "not-paired",
        "pairing",
        "bot",
        "group-disabled",
        "group-not-listed",
        "group-sender-not-listed",
        "sender-is-group",
    )
)
"""Why somebody was not let in: the reasons of `Drop`, and `pairing` for who was given a code. Of such messages nothing
is kept but that they came."""


def outside(policy: Policy, facts: Facts) -> bool:
    """Whether the rules let this sender in here with nothing they could say, and no list names them.

    It needs no state but the rules, so that it can be asked before an event is stored.
    """
    if facts.own or _known(policy, facts):
        return False
    loudest = replace(facts, event="message", mentioned=True, command=True)
    return isinstance(judge(policy, loudest), Drop)


def _known(policy: Policy, facts: Facts) -> bool:
    here = facts.room.allow if facts.room else None
    lists = (policy.allow, policy.group_allow, policy.paired, policy.owners, here or NOBODY)
    return any(each.names(facts.sender) for each in lists)


def _direct(policy: Policy, facts: Facts) -> Verdict:
    match policy.dm:
        case "disabled":
            return Drop("dm-disabled")
        case "open" | "allowlist" if not policy.allow.holds(facts.sender):
            return Drop("dm-not-listed")
        case "pairing" if not (policy.allow.holds(facts.sender) or policy.paired.names(facts.sender)):
            return Drop("bot" if facts.bot else "not-paired", knock=not facts.bot)
    if facts.bot and policy.bots == "none":
        return Drop("bot")
    known = policy.allow.names(facts.sender) or (policy.dm == "pairing" and policy.paired.names(facts.sender))
    return _admit(policy, facts, named=known)


def _group(policy: Policy, facts: Facts, room: Room) -> Verdict:
    if policy.group == "disabled" or not room.enabled:
        return Drop("group-disabled")
    if not room.listed:
        return Drop("group-not-listed")
    if facts.sender == facts.chat:
        return Drop("sender-is-group")
    people = policy.group_allow if room.allow is None else room.allow
    holds = people.holds(facts.sender) or not room.roles.isdisjoint(facts.roles)
    if not holds and (policy.group != "open" or room.allow is not None):
        return Observe("group-sender-not-listed") if policy.recorded else Drop("group-sender-not-listed")
    if facts.bot:
        bots = room.bots or policy.bots
        if bots == "none" or (bots == "mentions" and not facts.mentioned):
            return Drop("bot")
    named = people.names(facts.sender) or policy.owners.names(facts.sender)
    if room.mention and not facts.mentioned and not (facts.command and named):
        return Observe("not-mentioned")
    return _admit(policy, facts, named=named)


def _admit(policy: Policy, facts: Facts, *, named: bool) -> Dispatch:
    owner = policy.owners.names(facts.sender) and not facts.bot
    direct = facts.room is None
    answers = policy.answering.names(facts.sender) and not facts.bot
    return Dispatch(Admitted(facts.sender, facts.chat, direct, named or owner, owner, facts.bot, _SEAL, answers))


def people(
    entries: Iterable[Any], channel: str, groups: Mapping[str, Any] | None = None, aliases: Sequence[str] = ()
) -> People:
    """An owner's list as ids of `channel`. `telegram:123` is `123` there and nothing elsewhere; names (`@ann`, not the
    whole ids `@ann:server`) and what cannot be read let nobody in. `accessGroup:NAME` stands for its members.
    """
    ids: set[str] = set()
    anyone = False
    for text in _texts(entries, channel, groups or {}):
        entry = _bare(text, (channel, *aliases))
        if entry == ANYONE:
            anyone = True
        elif entry and (":" in entry or not entry.startswith("@")):
            ids.add(entry)
    return People(frozenset(ids), anyone)


def owners(entries: Iterable[Any], channel: str, aliases: Sequence[str] = ()) -> People:
    """The owners on one channel (`commands.ownerAllowFrom`); an entry names its channel, and a star none."""
    named = [text for text in _listed(entries) if text.partition(":")[0].lower() in (channel, *aliases)]
    return People(people(named, channel, None, aliases).ids)


def _texts(entries: Iterable[Any], channel: str, groups: Mapping[str, Any]) -> Iterable[str]:
    for text in _listed(entries):
        if text.startswith(GROUP_MARK):
            yield from _members(groups.get(text.removeprefix(GROUP_MARK)), channel)
        else:
            yield text


def _members(group: Any, channel: str) -> Iterable[str]:
    """The members of one access group on a channel; a group that cannot be read has none."""
    if not isinstance(group, Mapping) or group.get("type") != "message.senders":
        return
    members = group.get("members")
    if isinstance(members, Mapping):
        yield from _listed(members.get(ANYONE) or ())
        yield from _listed(members.get(channel) or ())


def _listed(entries: Iterable[Any]) -> Iterable[str]:
    plain = entries if not isinstance(entries, str | Mapping) else ()
    return (str(each).strip() for each in plain if isinstance(each, str | int) and not isinstance(each, bool))


def _bare(text: str, channels: Sequence[str]) -> str:
    """An entry without its channel's name."""
    head, colon, rest = text.partition(":")
    return rest.strip() if colon and head.lower() in channels else text
