"""Which gateway a client talks to, and with which secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from garra.config.paths import Paths
from garra.core.errors import UserError

DEFAULT_PORT = 18789


@dataclass(frozen=True, slots=True)
class Target:
    """A gateway's address. `source` says where the address came from; secrets are not printed."""

    url: str
    token: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    source: Literal["option", "environment", "running", "configuration", "default"] = "default"

    @property
    def auth(self) -> dict[str, str]:
        """The `auth` member of `connect`; empty when there is nothing to show."""
        return {name: text for name, text in (("token", self.token), ("password", self.password)) if text}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person said on the command line."""

    url: str = ""
    token: str = ""
    password: str = ""


def find(paths: Paths, env: Mapping[str, str], config: Mapping[str, Any], wanted: Wanted | None = None) -> Target:
    """The gateway to talk to: the one named, else the one that runs on this state folder, else the configured one.

    The configured secret goes to this machine's own gateway only: a url given by option or variable needs the token
    given too. Raises UserError when it is not, or the port is no port.
    """
    wanted = wanted or Wanted()
    token = wanted.token or paths.variable(env, "GATEWAY_TOKEN")
    password = wanted.password or paths.variable(env, "GATEWAY_PASSWORD")
    named = wanted.url or paths.variable(env, "GATEWAY_URL")
    if named:
        if not token and not password:
            raise UserError(f"{named}: give the token too (--token, or {paths.prefix}_GATEWAY_TOKEN)")
        return Target(web_socket(named), token, password, "option" if wanted.url else "environment")
    auth = _mapping(_mapping(config, "gateway"), "auth")
    token, password = token or _text(auth, "token"), password or _text(auth, "password")
    asked = paths.variable(env, "GATEWAY_PORT")
    if asked:
        return Target(local(_port(asked, f"{paths.prefix}_GATEWAY_PORT")), token, password, "environment")
    running = holder(paths)
    if running is not None:
        said = wanted.token or paths.variable(env, "GATEWAY_TOKEN")
        return Target(local(running["port"]), said or _of_this_run(paths) or token, password, "running")
    port = _mapping(config, "gateway").get("port")
    if port is None:
        return Target(local(DEFAULT_PORT), token, password)
    return Target(local(_port(port, "gateway.port")), token, password, "configuration")


def holder(paths: Paths) -> dict[str, Any] | None:
    """What the gateway that owns this state folder says about itself; None when none runs.

    `pid`, `port`, `startedAt`, `version`.
    """
    from garra.io.lock import holder as held  # noqa: PLC0415 - only who looks for a gateway needs the lock

    info = held(paths.lock)
    return info if info is not None and isinstance(info.get("port"), int) else None


def _of_this_run(paths: Paths) -> str:
    """The token that stands in no configuration, of a gateway that made it for itself or was given it to start."""
    from garra.client.passing import ask  # noqa: PLC0415 - only who has no secret asks

    return ask(paths.key_socket)


def local(port: int) -> str:
    return f"ws://127.0.0.1:{port}"


def web_socket(url: str) -> str:
    """The WebSocket form of an address that may have been given as http. Raises UserError for another scheme."""
    scheme, found, rest = url.partition("://")
    forms = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}
    if not found:
        return f"ws://{url}"
    if scheme not in forms:
        raise UserError(f"{url}: a gateway's address begins with ws:// or wss://")
    return f"{forms[scheme]}://{rest}"


def _mapping(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) and "${" not in found else ""


def _port(value: Any, where: str) -> int:
    try:
        port = int(value)
    except (TypeError, ValueError):
        port = 0
    if not 0 < port < 65_536:
        raise UserError(f"{where}: {value!r} is no port; a port is a number from 1 to 65535")
    return port
