"""An account's settings as this channel uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.channel import Account
from garra.sdk.ports import Via

Security = Literal["tls", "starttls", "none"]
_MB = 1 << 20
_LEVELS: Mapping[str, Security] = {"starttls": "starttls", "none": "none"}


@frozen
class Server:
    """Where a mailbox is read or its answers are sent, and as whom; no `user`: without logging in."""

    host: str
    port: int
    security: Security
    user: str
    password: Secret


@frozen
class Settings:
    """What the platform's side of an account needs. `receivers` are the names by which the receiving server signs its
    `Authentication-Results`; `credulous`: every From is believed. `room` is the largest mail in bytes.
    """

    address: str
    name: str
    imap: Server
    smtp: Server
    folder: str
    receivers: tuple[str, ...]
    credulous: bool
    mark_seen: bool
    idle_s: float
    poll_s: float
    text: int
    room: int
    via: Via

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2] or "localhost"


def settings(account: Account) -> Settings:
    """Read them."""
    own = account.settings
    imap, smtp = own.get("imap") or {}, own.get("smtp") or {}
    address = str(own.get("address") or "").strip()
    user = str(own.get("username") or address)
    word = _secret(own.get("password"))
    sending = _secret(smtp.get("password")) or word
    return Settings(
        address=address,
        name=str(own.get("displayName") or ""),
        imap=_server(imap, {"tls": 993, "starttls": 143, "none": 143}, user, word),
        smtp=_server(smtp, {"tls": 465, "starttls": 587, "none": 25}, str(smtp.get("username", user)), sending),
        folder=str(imap.get("folder") or "INBOX"),
        receivers=_names(own.get("authservId")),
        credulous=own.get("dangerouslyAllowUnauthenticated") is True,
        mark_seen=own.get("markSeen") is True,
        idle_s=60.0 * float(own.get("idleMinutes") or 5),
        poll_s=float(own.get("pollSeconds") or 60),
        text=int(own.get("textChunkLimit") or 100_000),
        room=int(min(float(own.get("mediaMaxMb") or 25), 25) * _MB),
        via=Via(own.get("proxy") or None, own.get("caFile") or None),
    )


def _server(own: Mapping[str, Any], ports: Mapping[str, int], user: str, password: Secret) -> Server:
    """A word that is no level of security is the safe one."""
    security: Security = _LEVELS.get(str(own.get("security") or ""), "tls")
    return Server(str(own.get("host") or ""), int(own.get("port") or ports[security]), security, user, password)


def _names(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list | tuple) else [value]
    return tuple(str(one).strip().lower() for one in listed if one and str(one).strip())


def _secret(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(str(value or ""))
