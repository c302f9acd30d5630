"""Who may call over HTTP: the shared secret as a bearer token, or a user that a trusted proxy vouches for."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from garra.core import limits
from garra.gateway.auth import proxied, same
from garra.gateway.door import Door
from garra.gateway.http_io import Rejected, json, vouch
from garra.gateway.origin import Approach
from garra.sdk.ports import Clock


class Bearers:
    """Judges requests. A wrong secret counts against its address; a missing one does not."""

    def __init__(self, door: Callable[[], Door], clock: Clock) -> None:
        self._door, self._clock = door, clock
        self._limits = limits.Limits()

    def check(self, request: Request) -> None:
        """Raises Rejected: 401, or 429 while the address is shut out. Who passes is vouched for."""
        self._judge(request)
        vouch(request)

    def _judge(self, request: Request) -> None:
        door = self._door()
        approach = _approach(request)
        if door.mode == "none":
            return
        if door.mode == "trusted-proxy":
            if not proxied(approach, request.headers, door):
                raise Rejected(unauthorized())
            return
        self._secret(request, door, approach)

    def _secret(self, request: Request, door: Door, approach: Approach) -> None:
        spared = approach.loopback and door.spare_loopback
        key, now = f"http {approach.address}", self._clock.monotonic()
        if not spared and (wait := limits.locked(self._limits, key, now)):
            body = {"error": {"message": "Too many failed authentication attempts", "type": "rate_limited"}}
            raise Rejected(json(body, 429, {"retry-after": str(-(-wait // 1000))}))
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not shown.strip():
            raise Rejected(unauthorized())
        if not same(shown.strip(), door):
            if not spared:
                self._limits = limits.failed(self._limits, key, now, door.rule)
            raise Rejected(unauthorized())


def unauthorized() -> Response:
    return json({"error": {"message": "Unauthorized", "type": "unauthorized"}}, 401)


def _approach(request: Request) -> Approach:
    found = request.scope.get("garra.approach")
    if isinstance(found, Approach):
        return found
    return Approach(request.client.host if request.client else "", loopback=False)
