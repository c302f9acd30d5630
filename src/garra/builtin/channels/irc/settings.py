"""An account's settings as this channel uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.core.secret import Secret
from garra.core.value import frozen
from garra.sdk.channel import Account
from garra.sdk.ports import Via

TEXT = 350


@frozen
class Services:
    """Who keeps the network's accounts, and ours there. `on`: log in when there is a password."""

    on: bool
    name: str
    account: str
    password: Secret
    register: str = ""


@frozen
class Settings:
    """What the platform's side of an account needs; who may write is not among it.

    `channels` are names with their keys. `by_name`: a person without a services account is known by nick and host.
    """

    host: str
    port: int
    tls: bool
    nick: str
    username: str
    realname: str
    password: Secret
    services: Services
    channels: tuple[tuple[str, str], ...]
    by_name: bool
    text: int
    via: Via


def settings(account: Account) -> Settings:
    """Read them."""
    own = account.settings
    tls = own.get("tls") is not False
    nick = str(own.get("nick") or "")
    return Settings(
        host=str(own.get("host") or ""),
        port=int(own.get("port") or (6697 if tls else 6667)),
        tls=tls,
        nick=nick,
        username=_word(own.get("username") or nick),
        realname=str(own.get("realname") or "Garra"),
        password=_secret(own.get("password")),
        services=_services(own.get("nickserv") or {}, nick),
        channels=tuple(_channel(str(one)) for one in own.get("channels") or () if str(one).strip()),
        by_name=own.get("dangerouslyAllowNameMatching") is True,
        text=int(own.get("textChunkLimit") or TEXT),
        via=Via(own.get("proxy") or None, own.get("caFile") or None),
    )


def _services(own: Mapping[str, Any], nick: str) -> Services:
    password = _secret(own.get("password"))
    mail = str(own.get("registerEmail") or "") if own.get("register") is True else ""
    on = own.get("enabled") is not False and bool(password)
    return Services(on, str(own.get("service") or "NickServ"), str(own.get("account") or nick), password, mail)


def _secret(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(str(value or ""))


def _word(value: Any) -> str:
    return "".join(char for char in str(value) if char.isalnum() or char in "-_.") or "garra"


def _channel(text: str) -> tuple[str, str]:
    """`#name` or `#name key`; a name without its sign gets one."""
    name, _, key = text.strip().partition(" ")
    return (name if name[0] in "#&+!" else f"#{name}"), key.strip().partition(" ")[0]
