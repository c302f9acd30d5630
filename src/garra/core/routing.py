"""Which agent answers, and in which session: bindings in eight levels, then the session's key.

    1 the peer itself   2 its parent   3 any peer of its kind   4 guild and roles   5 guild   6 team
    7 the account       8 the channel  and without any of them the default agent

All fields of a binding must match; of those on one level the first in the configuration wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from garra.core import keys
from garra.core.ids import AgentId, SessionKey
from garra.core.value import frozen

LEVELS = ("peer", "parent", "peer-kind", "guild-roles", "guild", "team", "account", "channel")
ANY = "*"
DEFAULT_ACCOUNT = "default"

Kind = Literal["direct", "group", "channel"]
_KINDS: Mapping[str, Kind] = {"direct": "direct", "dm": "direct", "group": "group", "channel": "channel"}
_SCOPES: Mapping[str, keys.Scope] = {
    "main": "main",
    "per-peer": "per-peer",
    "per-channel-peer": "per-channel-peer",
    "per-account-channel-peer": "per-account-channel-peer",
}


@frozen
class Spot:
    """Where a message comes from. `peer` is the person of a direct message, else the chat; `thread` a topic or thread
    in it, `parent` the chat it belongs to where threads are chats of their own.
    """

    channel: str
    account: str
    kind: Kind
    peer: str
    thread: str = ""
    parent: str = ""
    guild: str = ""
    team: str = ""
    roles: tuple[str, ...] = ()

    @property
    def exact(self) -> tuple[str, ...]:
        """The ids that mean this very place."""
        if not self.thread:
            return (self.peer,)
        return (f"{self.peer}:topic:{self.thread}", f"{self.peer}:thread:{self.thread}")

    @property
    def above(self) -> tuple[str, ...]:
        """The ids of what it is a part of."""
        return tuple(each for each in (self.peer if self.thread else "", self.parent) if each)


@frozen
class Binding:
    """One row of `bindings`; empty fields match everything, `account` empty the channel's default account."""

    agent: AgentId
    channel: str
    account: str = ""
    kind: Kind | None = None
    peer: str = ""
    guild: str = ""
    team: str = ""
    roles: frozenset[str] = frozenset()
    dm_scope: keys.Scope | None = None
    group_scope: str = ""


@frozen
class Settings:
    """How sessions are told apart. `accounts` names each channel's default account."""

    default: str = "main"
    dm_scope: keys.Scope | None = None
    group_scope: str = "per-group"
    main: str = "main"
    links: Mapping[str, Sequence[str]] = field(default_factory=dict)
    accounts: Mapping[str, str] = field(default_factory=dict)


@frozen
class Route:
    """`level` says which kind of binding won, `default` that none did. `scope` is how direct messages are kept apart
    here.
    """

    agent: AgentId
    key: SessionKey
    level: str
    scope: keys.Scope


def bindings(rows: Iterable[Mapping[str, Any]]) -> tuple[Binding, ...]:
    """The rows that route messages. One that cannot be read whole matches nothing and is left out."""
    return tuple(found for row in rows if (found := _binding(row)) is not None)


def _binding(row: Mapping[str, Any]) -> Binding | None:
    match = row.get("match")
    agent = row.get("agentId")
    if row.get("type", "route") != "route" or not isinstance(match, Mapping) or not _text(agent):
        return None
    channel = _text(match.get("channel"))
    peer = match.get("peer")
    kind = _KINDS.get(str(peer.get("kind"))) if isinstance(peer, Mapping) else None
    id_ = _text(peer.get("id")) if isinstance(peer, Mapping) else ""
    if not channel or ("peer" in match and (kind is None or not id_)):
        return None
    session = row.get("session") if isinstance(row.get("session"), Mapping) else {}
    assert isinstance(session, Mapping)
    roles = match.get("roles")
    return Binding(
        AgentId(_text(agent).lower()),
        channel.lower(),
        _text(match.get("accountId")),
        kind,
        id_,
        _text(match.get("guildId")),
        _text(match.get("teamId")),
        frozenset(_text(role) for role in roles) if isinstance(roles, list | tuple) else frozenset(),
        _SCOPES.get(_text(session.get("dmScope"))),
        _text(session.get("groupScope")),
    )


def _text(value: Any) -> str:
    return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""


def level(binding: Binding, spot: Spot, default_account: str = DEFAULT_ACCOUNT) -> int | None:
    """How closely a binding matches, an index into LEVELS; None when it does not."""
    if binding.channel != spot.channel or not _account(binding, spot, default_account):
        return None
    if binding.guild not in ("", spot.guild) or binding.team not in ("", spot.team):
        return None
    if binding.roles and binding.roles.isdisjoint(spot.roles):
        return None
    return next(_levels(binding, spot), None)


def _account(binding: Binding, spot: Spot, default_account: str) -> bool:
    return binding.account == ANY or spot.account == (binding.account or default_account)


def _levels(binding: Binding, spot: Spot) -> Iterator[int]:
    if binding.kind is not None:
        if binding.peer == ANY:
            places = (2,) if binding.kind == spot.kind else ()
        elif binding.kind == spot.kind and binding.peer in spot.exact:
            places = (0,)
        else:
            places = (1,) if spot.kind != "direct" and binding.peer in spot.above else ()
        yield from places
    elif binding.guild:
        yield 3 if binding.roles else 4
    elif binding.team:
        yield 5
    else:
        yield 7 if binding.account == ANY else 6


def pick(rows: Sequence[Binding], spot: Spot, settings: Settings) -> tuple[Binding | None, str]:
    """The binding that wins, and its level's name."""
    default_account = settings.accounts.get(spot.channel, DEFAULT_ACCOUNT)
    matches = ((found, row) for row in rows if (found := level(row, spot, default_account)) is not None)
    best = min(matches, key=lambda match: match[0], default=None)
    return (None, "default") if best is None else (best[1], LEVELS[best[0]])


def route(rows: Sequence[Binding], spot: Spot, settings: Settings) -> Route:
    """Who answers a message from `spot`, in which session."""
    binding, name = pick(rows, spot, settings)
    agent = binding.agent if binding else keys.agent_id(settings.default)
    scope = (binding.dm_scope if binding else None) or settings.dm_scope or "per-channel-peer"
    groups = (binding.group_scope if binding else "") or settings.group_scope
    return Route(agent, session(agent, spot, settings, scope, groups=groups), name, scope)


def session(agent: str, spot: Spot, settings: Settings, scope: keys.Scope, *, groups: str = "per-group") -> SessionKey:
    """The session of `spot` with one agent."""
    if spot.kind == "direct":
        sender = keys.Sender(spot.channel, spot.account, spot.peer)
        key = keys.direct(agent, sender, scope, main=settings.main, links=settings.links)
        threaded = bool(spot.thread) and scope != "main"
        return SessionKey(f"{key}:thread:{keys.quoted(spot.thread)}") if threaded else key
    if groups == "main":
        return keys.main_key(agent, settings.main)
    room, thread = (spot.parent, spot.thread or spot.peer) if spot.parent else (spot.peer, spot.thread)
    other = spot.account != settings.accounts.get(spot.channel, DEFAULT_ACCOUNT)
    if other:
        thread = "-".join(part for part in (thread, spot.channel, "account", spot.account) if part)
    if spot.kind == "group" and not spot.parent and spot.thread:
        return keys.room(agent, spot.channel, spot.kind, room, topic=thread)
    return keys.room(agent, spot.channel, spot.kind, room, thread=thread)
