"""The door's settings, from configuration and environment: who is asked for what, and where it may stand open."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import field

from garra.config import gate
from garra.config.gate import Mode
from garra.config.gate import hosts as hosts
from garra.config.sections import Config
from garra.core.errors import UserError
from garra.core.limits import Rule
from garra.core.secret import Secret
from garra.core.value import frozen
from garra.gateway.origin import Grounds, is_loopback, networks


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
    asked = gate.read(config, env, prefix)
    generated = asked.mode == "token" and not asked.token and bool(spare)
    proxy = auth.trusted_proxy
    limit = auth.rate_limit
    return Door(
        asked.mode,
        Secret(spare) if generated else asked.token,
        asked.password,
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


def new_token() -> str:
    """A token for one run, when none is configured. It is kept in memory only."""
    return secrets.token_urlsafe(24)


def check_secret(door: Door, config: Config) -> None:
    """Raises UserError where the configuration names a secret that cannot be had, and nothing else stands in for it."""
    auth = config.gateway.auth
    lacking = [named.missing for named in (auth.token, auth.password) if named is not None and named.missing]
    if lacking and (door.generated or not door.secret):
        raise UserError(f"the gateway does not start without its secret: {lacking[0]}")


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
