"""An account's settings as this channel uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.channel import Account
from garra.sdk.ports import Via

Security = Literal["starttls", "tls", "none"]
_LEVELS: Mapping[str, Security] = {"tls": "tls", "none": "none"}
_MB = 1 << 20


@frozen
class Settings:
    """What the platform's side of an account needs. `rooms` are addresses with their passwords."""

    jid: str
    password: Secret
    host: str
    port: int
    security: Security
    nick: str
    rooms: tuple[tuple[str, str], ...]
    text: int
    room: int
    via: Via

    @property
    def domain(self) -> str:
        return self.jid.rpartition("@")[2]


def settings(account: Account) -> Settings:
    """Read them; a word that is no level of security is the safe one."""
    own = account.settings
    jid = str(own.get("jid") or "").strip().split("/")[0].lower()
    security: Security = _LEVELS.get(str(own.get("security") or ""), "starttls")
    password = own.get("password")
    return Settings(
        jid=jid,
        password=password if isinstance(password, Secret) else Secret(str(password or "")),
        host=str(own.get("host") or jid.rpartition("@")[2]),
        port=int(own.get("port") or (5223 if security == "tls" else 5222)),
        security=security,
        nick=str(own.get("nick") or jid.partition("@")[0]),
        rooms=tuple(_room(str(one)) for one in own.get("rooms") or () if str(one).strip()),
        text=int(own.get("textChunkLimit") or 5000),
        room=int(float(own.get("uploadMaxMb") or 20) * _MB),
        via=Via(own.get("proxy") or None, own.get("caFile") or None),
    )


def _room(text: str) -> tuple[str, str]:
    name, _, word = text.strip().partition(" ")
    return name.split("/")[0].lower(), word.strip()
