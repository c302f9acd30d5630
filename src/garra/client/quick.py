"""A client for one or a few calls: blocking, without asyncio, so that a status costs a tenth of a second."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import garra
from garra.client.socket import Unreachable, WebSocket, fault
from garra.client.target import Target
from garra.core.errors import GarraError
from garra.io.clock import SystemClock

PROTOCOL = 4
CALL_S = 30.0
CONNECT_S = 10.0
AGAIN_S = 0.1
"""Between two tries at a gateway that is still starting."""
STARTING = "startup-sidecars"
"""The reason with which such a gateway turns everybody away."""
STRANGERS = frozenset({"DEVICE_IDENTITY_REQUIRED", "AUTH_TOKEN_MISSING", "AUTH_TOKEN_MISMATCH"})
"""Codes with which a gateway turns somebody away whom its token would let in."""


class Refused(GarraError):
    """The gateway answered with an error. `code` and `details` are its own; `payload` may stand beside it."""

    def __init__(self, error: Mapping[str, Any], payload: Any = None) -> None:
        details = error.get("details")
        super().__init__(
            str(error.get("message", "the gateway refused")),
            details=details if isinstance(details, dict) else None,
            retryable=bool(error.get("retryable", False)),
        )
        self.code = str(error.get("code", "UNAVAILABLE"))
        self.payload = payload


def identity(mode: str = "cli", name: str = "cli") -> dict[str, Any]:
    """The `client` member of `connect`."""
    family = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
    return {
        "id": name,
        "version": garra.__version__,
        "platform": sys.platform,
        "deviceFamily": family,
        "mode": mode,
        "instanceId": fresh(),
    }


def fresh() -> str:
    """A random UUID, without loading the module for it."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Gateway:
    """An open conversation with a gateway. Use it in `with`. `hello` is what it said on connecting."""

    def __init__(
        self, target: Target, scopes: Iterable[str] = ("operator.read",), timeout_s: float = CONNECT_S
    ) -> None:
        """A gateway that is still starting is waited for, `timeout_s` in all.

        Raises Unreachable when there is no conversation, Refused when the gateway does not let us in.
        """
        self._clock = SystemClock()
        self._count = 0
        end = self._clock.monotonic() + timeout_s
        while not self._let_in(target, list(scopes), end):
            self._clock.hold(AGAIN_S)

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

    def _let_in(self, target: Target, scopes: list[str], end: float) -> bool:
        """Open the line and say who we are. False where the gateway asks to come again and there is time for it."""
        left = max(end - self._clock.monotonic(), 0.01)
        self._line = WebSocket(target.url, left)
        try:
            self.hello = self._connect(target, scopes, left)
        except GarraError as fault:
            self._line.close()
            if starting(fault) and self._clock.monotonic() + AGAIN_S < end:
                return False
            raise _explained(fault, target) from None
        return True

    def _connect(self, target: Target, scopes: list[str], timeout_s: float) -> dict[str, Any]:
        params: dict[str, Any] = {
            "minProtocol": PROTOCOL,
            "maxProtocol": PROTOCOL,
            "client": identity(),
            "caps": [],
            "role": "operator",
            "scopes": scopes,
        }
        if target.auth:
            params["auth"] = target.auth
        hello: dict[str, Any] = self.call("connect", params, timeout_s)
        return hello

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        timeout_s: float | None = CALL_S,
        *,
        last: bool = False,
    ) -> Any:
        """Call a method and give its payload. `last`: the method answers twice, and the second answer is wanted.

        Raises Refused for an error, Unreachable when no answer comes within `timeout_s` (None: wait for ever).
        """
        self._count += 1
        number = f"{self._count}:{fresh()}"
        frame = {"type": "req", "id": number, "method": method, "params": dict(params or {})}
        self._line.send(json.dumps(frame, ensure_ascii=False).encode("utf-8", "replace"))
        end = None if timeout_s is None else self._clock.monotonic() + timeout_s
        while True:
            answer = self._next(end, method)
            if answer.get("type") != "res" or answer.get("id") != number:
                continue
            payload = answer.get("payload")
            if not answer.get("ok"):
                raise Refused(answer.get("error") or {}, payload)
            if not (last and isinstance(payload, dict) and payload.get("status") == "accepted"):
                return payload

    def _next(self, end: float | None, method: str) -> dict[str, Any]:
        left = None if end is None else end - self._clock.monotonic()
        if left is not None and left <= 0:
            raise fault("timeout", f"no answer to {method} from the gateway at {self._line.url}")
        self._line.limit(left)
        try:
            frame = json.loads(self._line.receive())
        except ValueError as error:
            raise fault("closed", f"the gateway at {self._line.url} sent what is no JSON") from error
        return frame if isinstance(frame, dict) else {}


def starting(fault: GarraError) -> bool:
    """Whether a gateway turned us away only because it is not ready yet."""
    return fault.retryable and (fault.details or {}).get("reason") == STARTING


def _explained(fault: GarraError, target: Target) -> GarraError:
    """A refusal at the door with what a person can do: the gateway may be another's than this configuration's."""
    code = (fault.details or {}).get("code")
    if not isinstance(fault, Refused) or code not in STRANGERS:
        return fault
    shown = "does not take the token that it was shown" if target.auth else "wants to know who asks"
    remedy = f"the gateway at {target.url} {shown}; give its own: --token TEXT, or the variable GARRA_GATEWAY_TOKEN"
    said = {"code": fault.code, "message": f"{fault.message}: {remedy}", "retryable": fault.retryable}
    return Refused({**said, "details": fault.details})


def call(
    target: Target,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    scopes: Iterable[str] = ("operator.read",),
    timeout_s: float | None = CALL_S,
    last: bool = False,
) -> Any:
    """One call on a connection of its own. Raises as `Gateway` does."""
    connect_s = CONNECT_S if timeout_s is None else min(CONNECT_S, timeout_s)
    with Gateway(target, scopes, connect_s) as gateway:
        return gateway.call(method, params, timeout_s, last=last)


def alive(target: Target, timeout_s: float = 1.5) -> bool:
    """Whether a gateway lets us in at `target` within `timeout_s`."""
    try:
        with Gateway(target, timeout_s=timeout_s):
            return True
    except (Unreachable, Refused):
        return False
