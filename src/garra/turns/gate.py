"""Ingest, classify, preflight: what an event is, and whether it is let in. `core.access` decides; this gathers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from garra.config.sections import Config
from garra.core import access, groups, loops
from garra.core.access import Dispatch, Drop, Facts, Verdict
from garra.core.groups import Group
from garra.core.value import frozen
from garra.domains.access.allowlist import Account, Accounts
from garra.sdk.channel import Inbound
from garra.sdk.ports import Clock
from garra.turns import commands
from garra.turns.commands import Given
from garra.turns.mentions import Mentions
from garra.turns.parts import Pairing

PAIRS: Final = 1_000
"""Pairs of bots that are remembered."""

Activation = Callable[[Inbound], Any]
"""Awaitable: what `/activation` set for the group of an event, `mention` or `always`, or None."""


@frozen
class Judged:
    """An event with its verdict. `text` is what was said, a button's value where it was a button. `group` are the rules
    of its group, None for a direct message.
    """

    verdict: Verdict
    event: Inbound
    text: str
    account: Account
    group: Group | None = None
    given: Given | None = None


class Gate:
    """The one gate."""

    def __init__(self, config: Callable[[], Config], pairing: Pairing, clock: Clock, activation: Activation) -> None:
        self._config, self._pairing, self._clock = config, pairing, clock
        self._activation = activation
        self.accounts = Accounts(config)
        self._pairs: OrderedDict[tuple[str, ...], loops.State] = OrderedDict()
        self._names = Mentions()

    async def judge(self, event: Inbound) -> Judged:
        """What becomes of an event. Nothing a channel says of itself widens it."""
        address = event.address
        account = self.accounts.find(address.channel, address.account)
        pressed = event.event == "button"
        text = event.data if pressed else event.text
        direct = address.kind == "direct"
        mentioned = direct or pressed or event.mentioned or self._named(event, text)
        given = commands.parse(text, mentioned=mentioned)
        group = None if direct else account.group(address.chat, address.thread, address.parent, address.guild)
        facts = Facts(
            event.event,
            event.sender.id,
            address.chat,
            mentioned,
            given is not None,
            event.own,
            event.sender.is_bot,
            group.room if group else None,
            address.roles,
        )
        policy = replace(account.policy, paired=self._pairing.allowed(account.channel, account.id))
        verdict = access.judge(policy, facts)
        if group is not None and isinstance(verdict, access.Observe | Dispatch):
            facts = await self._activated(event, facts)
            verdict = access.judge(policy, facts)
        if isinstance(verdict, Dispatch) and verdict.admitted.bot:
            verdict = self._between_bots(event, account, verdict)
        return Judged(verdict, event, text, account, group, given)

    async def _activated(self, event: Inbound, facts: Facts) -> Facts:
        """The facts with what `/activation` changed of its group."""
        mode = await self._activation(event)
        if facts.room is None or mode not in ("mention", "always"):
            return facts
        return replace(facts, room=replace(facts.room, mention=mode == "mention"))

    def _between_bots(self, event: Inbound, account: Account, verdict: Dispatch) -> Verdict:
        address = event.address
        pair = (address.channel, address.account, address.chat, event.sender.id)
        state = self._pairs.pop(pair, None) or loops.State(account.loop)
        self._pairs[pair], effect = loops.step(replace(state, settings=account.loop), loops.Heard(self._clock.now_ms()))
        while len(self._pairs) > PAIRS:
            self._pairs.popitem(last=False)
        return verdict if isinstance(effect, loops.Pass) else Drop("bot-loop")

    def _named(self, event: Inbound, text: str) -> bool:
        """Whether the words call the agent by a name its owner gave it."""
        if not text:
            return False
        config, address = self._config(), event.address
        scope = self.accounts.find(address.channel, address.account).raw.get("mentionPatterns")
        here = (address.chat, f"{address.chat}:topic:{address.thread}")
        return _in_scope(scope, here) and self._names.any(config, text)


def _in_scope(scope: Any, here: Sequence[str]) -> bool:
    if not isinstance(scope, Mapping):
        return True
    denied, allowed = _ids(scope.get("denyIn")), _ids(scope.get("allowIn"))
    if not denied.isdisjoint(here):
        return False
    return scope.get("mode", "allow") == "allow" or not allowed.isdisjoint(here)


def _ids(value: Any) -> frozenset[str]:
    return frozenset(str(each) for each in value) if isinstance(value, list | tuple) else frozenset()


def line(event: Inbound, text: str) -> groups.Line:
    """What was said, under its sender's label."""
    sender = event.sender
    who = groups.label(sender.name, sender.handle, sender.id)
    said = text or " ".join(f"<{media.kind}>" for media in event.media)
    return groups.Line(who, sender.id, said, event.id, sender.is_bot)
