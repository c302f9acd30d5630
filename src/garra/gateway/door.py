"""The door's settings, from configuration and environment: who is asked for what, and where it may stand open."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from garra.config.sections import Config
from garra.core.errors import UserError
from garra.core.limits import Rule
from garra.core.secret import Secret
from garra.core.value import frozen
from garra.gateway.origin import Grounds, is_loopback, networks

Mode = Literal["none", "token", "password", "trusted-proxy"]

LOOPBACK: Final = ("127.0.0.1", "::1")


@frozen
class Door:
    """How a client proves itself. `generated`: the token was made for this run and stands in no file."""

    mode: Mode = "token"
    token: Secret = field(default_factory=lambda: Secret(""))
    password: Secret = field(default_factory=lambda: Secret(""))
    generated: bool = False
    grounds: Grounds = field(default_factory=Grounds)
    rule: Rule = field(default_factory=Rule)
    spare_loopback: bool = True
    user_header: str = "x-forwarded-user"
    required_headers: tuple[str, ...] = ()
    allow_users: tuple[str, ...] = ()

    @property
    def secret(self) -> Secret:
        """What is asked for; empty when nothing is."""
        return {"token": self.token, "password": self.password}.get(self.mode, Secret(""))


def read(config: Config, env: Mapping[str, str], prefix: str = "GARRA", spare: str = "") -> Door:
    """The door that configuration and environment describe; `spare` is the token for when none is set."""
    section = config.gateway
    auth = section.auth
    token = _first(auth.token, env.get(f"{prefix}_GATEWAY_TOKEN", ""))
    password = _first(auth.password, env.get(f"{prefix}_GATEWAY_PASSWORD", ""))
    mode: Mode = auth.mode or ("password" if password and not token else "token")
    generated = mode == "token" and not token and bool(spare)
    proxy = auth.trusted_proxy
    limit = auth.rate_limit
    return Door(
        mode,
        Secret(spare) if generated else token,
        password,
        generated,
        Grounds(
            networks(section.trusted_proxies),
            (*section.control_ui.allowed_origins, *filter(None, (section.public_origin,))),
            all(is_loopback(host) for host in hosts(config)),
        ),
        Rule(limit.max_attempts, limit.window_ms / 1000, limit.lockout_ms / 1000),
        limit.exempt_loopback,
        (proxy.user_header if proxy else "x-forwarded-user").lower(),
        tuple(name.lower() for name in (proxy.required_headers if proxy else ())),
        proxy.allow_users if proxy else (),
    )


def _first(configured: Secret | None, variable: str) -> Secret:
    if configured:
        return configured
    return Secret(variable.strip())


def new_token() -> str:
    """A token for one run, when none is configured. It is kept in memory only."""
    return secrets.token_urlsafe(24)


def hosts(config: Config) -> tuple[str, ...]:
    """The addresses to listen on. Raises UserError when `custom` names none."""
    section = config.gateway
    match section.bind:
        case "lan":
            return ("0.0.0.0",)
        case "custom" | "tailnet" if section.custom_bind_host:
            return (section.custom_bind_host,)
        case "custom" | "tailnet":
            raise UserError(f"gateway.bind is {section.bind}: set gateway.customBindHost to the address to listen on")
        case _:
            return LOOPBACK


def check_bind(door: Door, addresses: tuple[str, ...], port: int, prefix: str = "GARRA") -> None:
    """Raises UserError when the gateway would be reachable from elsewhere without asking for anything."""
    for host in addresses:
        if is_loopback(host) or (door.mode == "trusted-proxy" and door.grounds.proxies):
            continue
        if not door.secret or door.generated:
            raise UserError(
                f"refusing to bind gateway to {host}:{port} without auth (set gateway.auth.token/password, "
                f"or set {prefix}_GATEWAY_TOKEN/{prefix}_GATEWAY_PASSWORD)"
            )
