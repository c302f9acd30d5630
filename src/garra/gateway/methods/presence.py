"""health, presence, and `connect` once it is too late for it."""

from __future__ import annotations

from typing import Any

import msgspec

from garra.core.errors import UserError
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.server import Gateway


def rows(gateway: Gateway) -> tuple[Method, ...]:
    """The rows, bound to one gateway."""

    def health(host: Any, caller: Caller, params: Any) -> msgspec.Raw:
        return gateway.health.read()

    def present(host: Any, caller: Caller, params: Any) -> list[dict[str, Any]]:
        return gateway.rows()

    def connect(host: Any, caller: Caller, params: Any) -> None:
        raise UserError("connect is only valid as the first request")

    return (
        Method("health", READ, None, health),
        Method("system-presence", READ, None, present),
        Method("connect", ADMIN, None, connect, advertised=False),
    )
