"""The gateway's gate, as configuration and environment say: where it listens, and what it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from garra.config.sections import Config
from garra.core.errors import UserError
from garra.core.secret import Secret
from garra.core.value import frozen

Mode = Literal["none", "token", "password", "trusted-proxy"]

LOOPBACK: Final = ("127.0.0.1", "::1")


@frozen
class Gate:
    """What is asked for: `mode`, and the secrets that are set, whether the mode uses them or not."""

    mode: Mode = "token"
    token: Secret = field(default_factory=lambda: Secret(""))
    password: Secret = field(default_factory=lambda: Secret(""))

    @property
    def secret(self) -> Secret:
        """What the mode asks for; empty where it is not set, or nothing is asked for."""
        return {"token": self.token, "password": self.password}.get(self.mode, Secret(""))


def read(config: Config, env: Mapping[str, str], prefix: str = "GARRA") -> Gate:
    """The configuration comes before the variables; without a mode it is by token, unless only a password is set."""
    auth = config.gateway.auth
    token = _first(auth.token, env.get(f"{prefix}_GATEWAY_TOKEN", ""))
    password = _first(auth.password, env.get(f"{prefix}_GATEWAY_PASSWORD", ""))
    return Gate(auth.mode or ("password" if password and not token else "token"), token, password)


def _first(configured: Secret | None, variable: str) -> Secret:
    if configured:
        return configured
    return Secret(variable.strip())


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


def check_funnel(config: Config, gate: Gate) -> None:
    """Raises UserError where Tailscale Funnel would put a gateway on the internet that asks for no password."""
    if config.gateway.tailscale.mode == "funnel" and not (gate.mode == "password" and gate.password):
        raise UserError(
            "refusing to start: gateway.tailscale.mode is funnel, which is the public internet, and that needs a "
            "password (set gateway.auth.mode to password and gateway.auth.password), or gateway.tailscale.mode to serve"
        )
