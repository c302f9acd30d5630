"""An account's settings as this channel uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.channel import Account, ChatKind
from garra.sdk.ports import Via

Join = Literal["direct", "off", "allowlist", "always"]
Threads = Literal["off", "inbound", "always"]
_MB = 1 << 20
_JOINS: Mapping[str, Join] = {"": "direct", "direct": "direct", "allowlist": "allowlist", "always": "always"}
_THREADS: Mapping[str, Threads] = {"": "inbound", "inbound": "inbound", "always": "always"}


@frozen
class Joining:
    """Which invitations are accepted. `direct`: those to direct chats are of use, by the policy of direct messages;
    `people`: the only ones whose are, None for anybody's. `listed` are rooms for `allowlist`, `rooms` those with rules.
    """

    mode: Join = "direct"
    listed: frozenset[str] = frozenset()
    rooms: frozenset[str] = frozenset()
    direct: bool = True
    people: frozenset[str] | None = None


@frozen
class Settings:
    """What the platform's side of an account needs; who may write is not among it."""

    homeserver: str
    token: Secret
    user: str
    password: Secret
    device: str
    device_name: str
    encryption: bool
    via: Via
    joining: Joining
    threads: Threads
    direct_threads: Threads
    reactions: str
    text: int
    file: int
    first: int

    def threading(self, kind: ChatKind) -> Threads:
        return self.direct_threads if kind == "direct" else self.threads


def settings(account: Account) -> Settings:
    """Read them; a word that is not known is the closed one."""
    own = account.settings
    threads = _THREADS.get(str(own.get("threadReplies") or ""), "off")
    direct = str(_dict(own.get("dm")).get("threadReplies") or "")
    return Settings(
        homeserver=str(own.get("homeserver") or "").strip().rstrip("/"),
        token=_secret(own.get("accessToken")),
        user=str(own.get("userId") or "").strip(),
        password=_secret(own.get("password")),
        device=str(own.get("deviceId") or ""),
        device_name=str(own.get("deviceName") or "Garra"),
        encryption=own.get("encryption") is not False,
        via=Via(own.get("proxy") or None, own.get("caFile") or None),
        joining=_joining(own),
        threads=threads,
        direct_threads=_THREADS.get(direct, "off") if direct else threads,
        reactions=str(own.get("reactionNotifications") or "own"),
        text=int(own.get("textChunkLimit") or 4000),
        file=int(float(own.get("mediaMaxMb") or 20) * _MB),
        first=int(own.get("initialSyncLimit") or 0),
    )


def _joining(own: Mapping[str, Any]) -> Joining:
    policy = str(own.get("dmPolicy") or _dict(own.get("dm")).get("policy") or "pairing")
    people = frozenset(str(one).removeprefix("matrix:") for one in own.get("allowFrom") or ())
    return Joining(
        _JOINS.get(str(own.get("autoJoin") or ""), "off"),
        frozenset(str(one) for one in own.get("autoJoinAllowlist") or ()),
        frozenset(str(one) for one in _dict(own.get("groups")) if one != "*"),
        policy in {"pairing", "allowlist", "open"} and _dict(own.get("dm")).get("enabled") is not False,
        None if policy == "pairing" or "*" in people else people,
    )


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _secret(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(str(value or ""))
