"""One request: look up, check, parse, run, answer. The only place here that catches what nobody foresaw."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Final

import msgspec

from garra.core import frames
from garra.core.errors import GarraError, Unavailable, UserError
from garra.core.frames import Request, reword
from garra.gateway.method import Caller, Method, Registry, Reply, Who
from garra.gateway.peers import Peer
from garra.sdk.ports import Spawn

log = logging.getLogger(__name__)

IN_FLIGHT: Final = 1_024
"""So many requests of one connection run at once."""

RETRY_MS: Final = 1_000

WORDS: Final = ("agent", "chat.", "logs.", "messages.", "sessions.")
"""The methods whose answers are what people, models and programs said: no secret that is known gets out with them."""


class Dispatcher:
    """Carries out requests on a host. `ready` says whether methods that need the whole house may run; `clean` keeps the
    secrets that are known out of JSON.
    """

    def __init__(
        self,
        registry: Registry,
        host: Any,
        spawn: Spawn,
        ready: Callable[[], bool],
        *,
        clean: Callable[[bytes], bytes] | None = None,
        bounded: Callable[[str, Who], None] = lambda *_: None,
    ) -> None:
        self.registry, self._clean, self._bounded = registry, clean, bounded
        self._host = host
        self._spawn = spawn
        self._ready = ready
        self._decoders: dict[str, msgspec.json.Decoder[Any]] = {}

    def __call__(self, peer: Peer, request: Request) -> None:
        """Begin; a method that waits for nothing is answered before this returns."""
        try:
            result = self._begin(peer, request)
            if not isawaitable(result):
                self._answer(peer, request, result)
                return
        except Exception as fault:  # noqa: BLE001 - the supervision point of every request
            peer.fail(request.id, self._told(fault, request.method))
            return
        peer.in_flight += 1
        self._spawn(self._finish(peer, request, result), f"rpc {request.method}")

    def _begin(self, peer: Peer, request: Request) -> Any:
        row = self.registry.pick(request.method, peer.who)
        self._bounded(row.name, peer.who)
        if peer.in_flight >= IN_FLIGHT:
            raise later("too many requests of this connection are running")
        if row.startup and not self._ready():
            raise later("the gateway is still starting")
        _check_profile(peer, request)
        return row.run(self._host, Caller(peer, request.id), self._params(row, request))

    async def _finish(self, peer: Peer, request: Request, result: Awaitable[Any]) -> None:
        try:
            self._answer(peer, request, await result)
        except Exception as fault:  # noqa: BLE001 - the supervision point of every request
            peer.fail(request.id, self._told(fault, request.method))
        finally:
            peer.in_flight -= 1

    def _answer(self, peer: Peer, request: Request, result: Any) -> None:
        if isinstance(result, Reply) and result.error is not None:
            peer.fail(request.id, result.error, result.payload)
        else:
            payload = result.payload if isinstance(result, Reply) else result
            if self._clean is not None and request.method.startswith(WORDS):
                payload = msgspec.Raw(self._clean(frames.encode(payload)))
            peer.respond(request.id, payload)

    def _params(self, row: Method, request: Request) -> Any:
        raw = bytes(request.params) or b"{}"
        try:
            return self._decoder(row).decode(raw)
        except (msgspec.DecodeError, RecursionError) as fault:
            raise UserError(f"invalid {row.name} params: {reword(str(fault))}") from None

    def _decoder(self, row: Method) -> msgspec.json.Decoder[Any]:
        found = self._decoders.get(row.name)
        if found is None:
            found = self._decoders[row.name] = msgspec.json.Decoder(row.params or Any)
        return found

    def _told(self, fault: Exception, method: str) -> GarraError:
        if isinstance(fault, GarraError):
            return fault
        log.error("method %s ended with a fault", method, exc_info=fault)
        return GarraError(f"{method} failed inside the gateway; its log says why")


def later(message: str) -> Unavailable:
    """Not now, but soon."""
    return Unavailable(message, details={"retryAfterMs": RETRY_MS}, retryable=True)


def _check_profile(peer: Peer, request: Request) -> None:
    expected = request.expected_profile_id
    if expected is not None and expected != peer.who.profile:
        details = {"reason": "EXPECTED_PROFILE_MISMATCH", "execution": "not_started"}
        raise UserError("this connection belongs to another profile", details=details)
