"""What of a chat's messages is text from outside: everything that no owner wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from garra.config.sections import Config
from garra.core import outside
from garra.core.access import People
from garra.core.groups import Line
from garra.core.taint import Mark, Source
from garra.domains.access.allowlist import Account
from garra.turns.ask import Spoken
from garra.turns.gate import line

OUTSIDE: Final[Mapping[str, Source]] = {"email": "mail", "webhook": "network"}
"""Channels whose texts are from outside, whoever sends them: they hold what others wrote, or what a program made."""


def owners(account: Account, config: Config, paired: People) -> frozenset[str]:
    """Who on an account is an owner for sure: those whom `commands.ownerAllowFrom` names. Where that names nobody at
    all, the one person who may write directly; where there are several, nobody.
    """
    if config.commands.get("ownerAllowFrom"):
        return account.policy.owners.ids
    known = account.policy.allow.ids | paired.ids
    return known if len(known) == 1 else frozenset()


def told(spoken: Spoken, config: Config, own: frozenset[str]) -> Spoken:
    """The message with its marks. A mail or a program's call that no owner sent stands in a marked part."""
    found = of(spoken, config, own)
    mail = spoken.event.address.channel in OUTSIDE and spoken.admitted.direct
    if mail and spoken.admitted.sender not in own and spoken.words:
        return replace(spoken, marks=found, words=outside.wrap(spoken.words, found[0]))
    return replace(spoken, marks=found)


def of(spoken: Spoken, config: Config, own: frozenset[str]) -> tuple[Mark, ...]:
    """The marks of one message, with what it answers and what was attached."""
    event, who = spoken.event, spoken.admitted
    said = line(event, "").who
    if (source := OUTSIDE.get(event.address.channel)) is not None:
        return (Mark(source, said), *_files(spoken))
    trusted = who.sender in own and not who.bot
    marks: tuple[Mark, ...] = () if trusted else (Mark("person" if who.direct else "group", _where(said, spoken)),)
    if event.reply_text.strip() and not who.direct:
        marks = (*marks, Mark("group", _where("somebody", spoken)))
    if not trusted or config.tools.taint.files == "all":
        marks = (*marks, *_files(spoken))
    return marks


def heard(lines: Sequence[Line], spoken: Spoken, own: frozenset[str]) -> tuple[Mark, ...]:
    """The marks of what was said in a group meanwhile."""
    others = dict.fromkeys(each.who for each in lines if each.bot or each.id not in own)
    return tuple(Mark("group", _where(who, spoken)) for who in others)


def _where(who: str, spoken: Spoken) -> str:
    return f"{who} on {spoken.event.address.channel}"


def _files(spoken: Spoken) -> tuple[Mark, ...]:
    return tuple(Mark("file", each.name or f"({each.kind})") for each in spoken.event.media)
