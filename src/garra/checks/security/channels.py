"""Who may write to the agent."""

from __future__ import annotations

from collections.abc import Iterator

from garra.checks.security.finding import Finding, Narrow, found
from garra.checks.security.ground import Ground, named
from garra.checks.security.reach import Account, accounts
from garra.config.sections.channels import Channel


def judge(ground: Ground) -> Iterator[Finding]:
    for account in accounts(ground):
        yield from _direct(account)
        yield from _groups(ground, account)
        if account.rules.get("dangerouslyAllowNameMatching") is True:
            detail = f"{account.where}.dangerouslyAllowNameMatching is true."
            name = "channels.<channel>.allowFrom.dangerous_name_matching_enabled"
            yield found(name, detail, of=account.channel)
        if account.names:
            detail = f"{account.where}: {named(account.names)} lets nobody in."
            yield found("channels.<channel>.allowFrom.mutable_entries_inert", detail, of=account.channel)
    for channel in {one.channel: None for one in accounts(ground)}:
        yield from _shared(ground, channel)


def _direct(account: Account) -> Iterator[Finding]:
    policy = account.rules.get("dmPolicy")
    if account.anybody:
        detail = f"{account.where} has * in allowFrom" + (" and dmPolicy open." if policy == "open" else ".")
        yield found("channels.<channel>.dm.open", detail, of=account.channel)
    elif policy == "open":
        detail = f"{account.where}.dmPolicy is open, allowFrom has no *."
        yield found("channels.<channel>.dm.open_invalid", detail, of=account.channel)


def _groups(ground: Ground, account: Account) -> Iterator[Finding]:
    if account.rules.get("groupPolicy") == "open":
        at = next(at for at in _places(account) if at is not None and _says_open(ground, at))
        fix = Narrow((*at, "groupPolicy"))
        yield found("channels.<channel>.groups.open", f"{'.'.join(fix.at)} is open.", of=account.channel, fixes=(fix,))


def _places(account: Account) -> Iterator[tuple[str, ...]]:
    """Where its group policy may stand, the nearest first."""
    yield account.at
    yield account.at[:2]
    yield ("channels", "defaults")


def _says_open(ground: Ground, at: tuple[str, ...]) -> bool:
    section = ground.config.channels.get(at[1])
    chosen = section.accounts.get(at[3]) if isinstance(section, Channel) and len(at) > 2 else section
    return chosen is not None and chosen.group_policy == "open"


def _shared(ground: Ground, channel: str) -> Iterator[Finding]:
    if ground.config.session.dm_scope != "main":
        return
    here = [one.allow for one in accounts(ground) if one.channel == channel]
    count = len(frozenset().union(*(one.ids for one in here))) + ground.people.get(channel, 0)
    everybody = any(one.anyone for one in here)
    if count > 1 or everybody:
        who = "everybody" if everybody else f"{count} people"
        detail = f"session.dmScope is main, and {who} may write on {channel}."
        yield found("channels.<channel>.dm.scope_main_multiuser", detail, of=channel)
