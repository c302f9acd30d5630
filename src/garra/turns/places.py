"""In which chats a question is asked: that of its turn, its owner's or approvers' own, and those that the owner named.

A chat is asked only where somebody in it may answer: a direct one with an approver, a group whose account has approvers
and where `/approve` is on. What else a target names is told in the log, once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Final

from garra.config.sections import Config
from garra.config.sections.channels import default_account
from garra.core import forwarding
from garra.core.approvals import Approval, Source
from garra.core.errors import GarraError
from garra.core.forwarding import Target
from garra.core.ids import SessionKey
from garra.core.value import frozen
from garra.domains.access.allowlist import Account, Accounts
from garra.sdk.channel import Address, Inbound

log = logging.getLogger(__name__)

OPEN_S: Final = 10.0
"""How long a platform may take to open one direct chat."""
MOST: Final = 12
"""Chats that one question is asked in."""


@frozen
class Ports:
    """`own` is a direct chat with an owner, None where there is none. `direct` gives the direct chat of an account with
    a person, None where there can be none. `heard` is the last message that came from a chat of an account. `session`
    is the chat that a session was last spoken to from. `sends` says whether an account sends at all.
    """

    config: Callable[[], Config]
    accounts: Accounts
    own: Callable[[], Awaitable[Address | None]]
    direct: Callable[[str, str, str], Awaitable[Address | None]]
    heard: Callable[[str, str, str], Awaitable[Inbound | None]]
    session: Callable[[SessionKey], Awaitable[Address | None]]
    sends: Callable[[Address], bool]


class Places:
    """Finds them. The configuration is read anew for each question."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._told: set[str] = set()

    async def of(self, approval: Approval) -> tuple[Address, ...]:
        """Where it is asked, without a place twice; the first is the one that is asked before the others."""
        found: dict[tuple[str, ...], Address] = {}
        async for address in self._every(approval):
            found.setdefault((address.channel, address.account, address.chat, address.thread), address)
        return tuple(found.values())[:MOST]

    async def _every(self, approval: Approval) -> AsyncIterator[Address]:
        async for address in self._native(approval):
            yield address
        async for address in self._forwarded(approval):
            yield address

    # ---- the chat that it came from

    async def _native(self, approval: Approval) -> AsyncIterator[Address]:
        source, question = approval.source, approval.question
        if source.unattended or not source.channel:
            return
        account = self._ports.accounts.find(source.channel, source.account)
        if not account.asking.enabled or not account.asking.filter.takes(question.agent_id, question.session_key):
            return
        here = _at(source) if answered_in(account, _at(source), source.sender) else None
        where = account.asking.where
        if here is not None and where != "dm":
            yield here
        if where in ("dm", "both"):
            async for address in self._approvers(account):
                yield address
        elif here is None and (own := await self._own()) is not None:
            yield own

    async def _approvers(self, account: Account) -> AsyncIterator[Address]:
        """The direct chats of an account with those who answer there."""
        for sender in sorted(account.policy.answering.ids):
            if (address := await self._direct(account.channel, account.id, sender)) is not None:
                yield address

    async def _own(self) -> Address | None:
        """An owner's own chat; None where its account has others answer than him."""
        own = await self._ports.own()
        if own is None:
            return None
        account = self._ports.accounts.find(own.channel, own.account)
        named = account.policy.approvers
        return own if account.asking.enabled and (not named.ids or named.names(own.chat)) else None

    # ---- other chats

    async def _forwarded(self, approval: Approval) -> AsyncIterator[Address]:
        question = approval.question
        family = "exec" if question.kind == "exec" else "plugin"
        rule = forwarding.forward(self._ports.config().approvals.get(family))
        if not rule.filter.takes(question.agent_id, question.session_key):
            return
        if rule.session and (address := await self._session(approval)) is not None:
            yield address
        for target in rule.targets:
            address = await self._target(target, f"approvals.{family}.targets")
            if address is not None:
                yield address

    async def _session(self, approval: Approval) -> Address | None:
        """The chat of its session, where somebody in it may answer."""
        source = approval.source
        address = _at(source) if source.channel else await self._ports.session(approval.question.session_key)
        if address is None or not self._ports.sends(address):
            return None
        account = self._ports.accounts.find(address.channel, address.account)
        return address if answered_in(account, address, source.sender or await self._person(address)) else None

    async def _person(self, address: Address) -> str:
        """Who is in a direct chat; empty where nobody has written in it."""
        heard = await self._ports.heard(address.channel, address.account, address.chat)
        return heard.sender.id if heard is not None else ""

    async def _target(self, target: Target, where: str) -> Address | None:
        config = self._ports.config()
        section = config.channels.get(target.channel)
        if section is None:
            self._warn(where, target, "there is no such channel in the configuration")
            return None
        account = self._ports.accounts.find(target.channel, target.account or default_account(section))
        address, person = await self._meant(account, target)
        if address is None or not self._ports.sends(address):
            self._warn(where, target, "no account sends there now")
            return None
        if not answered_in(account, address, person):
            self._warn(where, target, _unanswered(account, address))
            return None
        return address

    async def _meant(self, account: Account, target: Target) -> tuple[Address | None, str]:
        """The chat that a target means, and whose it is where it is a direct one."""
        person, room = forwarding.person(target.to), forwarding.room(target.to)
        heard = None if person or room else await self._ports.heard(account.channel, account.id, target.to)
        if heard is not None:
            return replace(heard.address, thread=target.thread, roles=()), heard.sender.id
        if not room and not person and account.policy.answering.names(target.to):
            person = target.to
        if person:
            return await self._direct(account.channel, account.id, person), person
        return Address(account.channel, account.id, room or target.to, "group", target.thread), ""

    async def _direct(self, channel: str, account: str, person: str) -> Address | None:
        try:
            async with asyncio.timeout(OPEN_S):
                found = await self._ports.direct(channel, account, person)
        except TimeoutError:
            log.info("%s opens no direct chat with %s within %d seconds", channel, person, OPEN_S)
            return None
        except GarraError as error:
            log.info("%s has no direct chat with %s: %s", channel, person, error.message)
            return None
        return found if found is not None and self._ports.sends(found) else None

    def _warn(self, where: str, target: Target, why: str) -> None:
        line = f"{where}: no question is shown in {target.channel} {target.to}: {why}"
        if line not in self._told:
            self._told.add(line)
            log.warning("%s", line)


def answered_in(account: Account, address: Address, person: str) -> bool:
    """Whether a question shown there can be answered there: a direct chat (with `person`) by that person, a group by
    an approver of its account.
    """
    answering = account.policy.answering
    if address.kind == "direct":
        return answering.names(person)
    group = account.group(address.chat, address.thread, address.parent, address.guild)
    return bool(answering.ids) and group.command_level == "all"


def _unanswered(account: Account, address: Address) -> str:
    if not account.policy.answering.ids:
        return "nobody may answer there: name approvers in execApprovals.approvers or commands.ownerAllowFrom"
    if address.kind == "direct":
        return "that person may not answer: execApprovals.approvers or commands.ownerAllowFrom name who may"
    return "/approve is off in that group (commandLevel)"


def _at(source: Source) -> Address:
    return Address(
        source.channel, source.account, source.chat, "direct" if source.direct else "group", source.thread,
        source.parent, source.guild,
    )  # fmt: skip


def faults(config: Config) -> Iterator[str]:
    """What of the settings cannot be read, and so is closed."""
    for family in ("exec", "plugin"):
        if (raw := config.approvals.get(family)) is not None:
            yield from (f"approvals.{family}.{line}" for line in forwarding.faults(raw))
