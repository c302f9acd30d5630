"""Who is let in: one judgement per connect, from what it shows and what is on record. Raises Turned otherwise.

Rights come from the gateway's own record of the credential, never from what a client says of itself. Credentials are
compared in constant time. Only a wrong one counts against its address; a missing one does not.
"""

from __future__ import annotations

import hmac
import importlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Literal, assert_never

from garra.core import devices as core
from garra.core import limits
from garra.core.devices import Ask, Device, Knock, Pair, Pending, Reject, Welcome
from garra.core.errors import Unavailable, UserError
from garra.core.frames import PROTOCOL, Connect
from garra.core.value import frozen
from garra.domains.access.devices import Devices
from garra.gateway import refusals
from garra.gateway.door import Door
from garra.gateway.method import Client, Role, Who
from garra.gateway.origin import Approach
from garra.gateway.refusals import Turned
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

OWNER: Final = "gateway-owner"
WEB: Final = frozenset({"openclaw-control-ui", "webchat-ui", "webchat"})
SELF: Final = frozenset({("cli", "cli"), ("gateway-client", "backend")})
"""Programs of this machine's owner that keep their scopes with the shared secret alone."""

Shared = Literal["ok", "wrong", "absent"]


@frozen
class Caught:
    """One connect and where it came from; `headers` have lower-case names."""

    connect: Connect
    approach: Approach
    headers: Mapping[str, str]
    nonce: str
    conn_id: str


@frozen
class Admission:
    """Let in. `scopes` as granted, in the order asked; a device also gets its token."""

    who: Who
    scopes: tuple[str, ...]
    device_token: str | None = None
    issued_at: int | None = None


@frozen
class Ears:
    """What the gatekeeper tells: a request that began to wait, one that was settled without being asked."""

    requested: Callable[[Pending], None] = lambda _: None
    paired: Callable[[Device], None] = lambda _: None


class Gatekeeper:
    """Judges connects. `door` is asked anew each time, so a changed secret counts at once."""

    def __init__(self, door: Callable[[], Door], devices: Devices, clock: Clock, ears: Ears | None = None) -> None:
        self._door = door
        self._devices = devices
        self._clock = clock
        self._ears = ears or Ears()
        self._limits = limits.Limits()

    async def admit(self, caught: Caught) -> Admission:
        """Raises Turned with the error to answer and how to close."""
        door = self._door()
        _check_version(caught.connect)
        _check_origin(caught)
        key = self._key(caught, door)
        wait = limits.locked(self._limits, key, self._clock.monotonic()) if key else 0
        if wait:
            raise refusals.rate_limited(wait)
        try:
            admission = await self._judge(caught, door)
        except Turned as turned:
            if key and turned.guessed:
                self._limits = limits.failed(self._limits, key, self._clock.monotonic(), door.rule)
            raise
        if key:
            self._limits = limits.passed(self._limits, _counted(_where(caught, door), admission.who.method))
        return admission

    def _key(self, caught: Caught, door: Door) -> str:
        """By what wrong credentials are counted; empty for a program of this machine, which is spared."""
        where = _where(caught, door)
        auth = caught.connect.auth
        alone = auth.device_token and not (auth.token or auth.password)
        return _counted(where, "device-token" if alone else "") if where else ""

    async def _judge(self, caught: Caught, door: Door) -> Admission:
        shared, method = shared_auth(caught, door)
        if caught.connect.device is None:
            return self._without_device(caught, door, shared, method)
        self._check_device(caught)
        return await self._with_device(caught, door, shared, method)

    def _without_device(self, caught: Caught, door: Door, shared: Shared, method: str) -> Admission:
        connect = caught.connect
        client = connect.client
        if shared == "wrong":
            raise refusals.mismatch(door.mode, client.id, device=False)
        if connect.role == "node" or shared == "absent":
            raise refusals.device_required()
        if method != "trusted-proxy" and (client.id in WEB or client.mode in ("ui", "webchat")):
            raise refusals.ui_device_required()
        local = caught.approach.loopback and caught.approach.origin is None
        keeps = (local and (client.id, client.mode) in SELF) or method == "trusted-proxy"
        return self._admission(caught, connect.scopes if keeps else (), method)

    def _check_device(self, caught: Caught) -> None:
        flaw = core.flaw(caught.connect, caught.nonce, self._clock.now_ms())
        if flaw:
            raise refusals.device(flaw)
        if not signed(caught.connect):
            raise refusals.device("device-signature")

    async def _with_device(self, caught: Caught, door: Door, shared: Shared, method: str) -> Admission:
        connect = caught.connect
        knock = _knock(caught, shared)
        asked = core.wish(connect, knock.scopes)
        device = self._devices.get(asked.device_id)
        verdict = core.judge(knock, device)
        match verdict:
            case Pair():
                paired, token = await self._devices.pair(asked, "silent")
                self._ears.paired(paired)
                return self._device_admission(caught, method, token)
            case Welcome(by_token=True):
                return self._device_admission(caught, "device-token", connect.auth.device_token or connect.auth.token)
            case Welcome():
                token = await self._devices.token(asked.device_id, asked.role)
                return self._device_admission(caught, method, token)
            case Ask(reason):
                request, new = await self._devices.ask(asked)
                if new:
                    self._ears.requested(request)
                raise refusals.pairing(reason, request, device)
            case Reject(code):
                raise refusals.rejected(code, door.mode, connect.client.id)
            case _:
                assert_never(verdict)

    def _device_admission(self, caught: Caught, method: str, token: str | None) -> Admission:
        connect = caught.connect
        assert connect.device is not None
        self._devices.seen(connect.device.id)
        grant = self._devices.granted(connect.device.id, connect.role)
        admission = self._admission(caught, connect.scopes, method)
        who = replace(
            admission.who,
            device_id=connect.device.id,
            profile=OWNER if connect.role == "operator" else None,
        )
        return Admission(who, connect.scopes, token, grant.rotated_at or grant.created_at)

    def _admission(self, caught: Caught, scopes: tuple[str, ...], method: str) -> Admission:
        connect = caught.connect
        role: Role = "node" if connect.role == "node" else "operator"
        client = connect.client
        who = Who(
            caught.conn_id,
            Client(
                client.id,
                client.mode,
                client.version,
                client.platform,
                client.display_name or "",
                client.device_family or "",
                client.model_identifier or "",
                client.instance_id or "",
                client.time_zone or "",
            ),
            role,
            frozenset(scopes),
            frozenset(connect.caps),
            connect.commands,
            method=method,
            address=caught.approach.address,
            loopback=caught.approach.loopback,
            port=caught.approach.port,
            since_ms=self._clock.now_ms(),
        )
        return Admission(who, scopes)


def _where(caught: Caught, door: Door) -> str:
    """Who tries: an address, or the page in a browser of this machine, which is never spared."""
    approach = caught.approach
    if approach.loopback and approach.origin is not None:
        return f"browser-origin:{approach.origin}"
    return "" if approach.loopback and door.spare_loopback else approach.address


def _counted(where: str, method: str) -> str:
    """Devices' tokens and the shared secret are counted apart: a right one excuses no guess at the other."""
    return f"device {where}" if method == "device-token" else where


def _check_version(connect: Connect) -> None:
    if connect.role not in ("operator", "node"):
        raise refusals.role(connect.role)
    low, high = connect.min_protocol, connect.max_protocol
    older = (connect.role == "node" and connect.client.mode == "node") or connect.client.mode == "probe"
    if low > PROTOCOL or high < (PROTOCOL - 1 if older else PROTOCOL):
        raise refusals.version(low, high)


def _check_origin(caught: Caught) -> None:
    web = caught.connect.client.id in WEB
    if caught.approach.foreign or (web and caught.approach.origin is None):
        raise refusals.origin("origin missing" if caught.approach.origin is None else "origin not allowed")


def shared_auth(caught: Caught, door: Door) -> tuple[Shared, str]:
    """Whether a connect showed the gateway's own secret, and the name of the way it did."""
    if door.mode == "none":
        return "ok", "none"
    if door.mode == "trusted-proxy":
        return ("ok" if proxied(caught.approach, caught.headers, door) else "absent"), "trusted-proxy"
    auth = caught.connect.auth
    shown = [text for text in (auth.token, auth.password) if text]
    if not shown:
        return "absent", door.mode
    return ("ok" if any(same(text, door) for text in shown) else "wrong"), door.mode


def same(text: str, door: Door) -> bool:
    """Whether `text` is the shared secret, in constant time. An empty secret is nobody's."""
    secret = door.secret
    if not secret:
        return False
    return hmac.compare_digest(text.encode("utf-8", "surrogatepass"), secret.reveal().encode())


def proxied(approach: Approach, headers: Mapping[str, str], door: Door) -> bool:
    """Whether a trusted proxy vouches for a user."""
    user = headers.get(door.user_header, "").strip()
    complete = all(headers.get(name, "").strip() for name in door.required_headers)
    allowed = not door.allow_users or user in door.allow_users
    return approach.forwarded and bool(user) and complete and allowed


def _knock(caught: Caught, shared: Shared) -> Knock:
    connect = caught.connect
    auth = connect.auth
    tokens = tuple(core.digest(text) for text in (auth.device_token, auth.token) if text)
    named: Literal["deviceToken", "token", "nothing"] = "nothing"
    if auth.device_token:
        named = "deviceToken"
    elif auth.token or auth.password:
        named = "token"
    local = caught.approach.loopback and not caught.approach.foreign
    return Knock(
        connect.role,
        connect.scopes,
        core.plain(connect.client.platform),
        core.plain(connect.client.device_family),
        shared == "ok",
        local,
        tokens,
        named,
    )


def signed(connect: Connect) -> bool:
    """Whether the device's signature is good, for either version of the text."""
    device = connect.device
    assert device is not None
    key, signature = core.raw(device.public_key), core.raw(device.signature)
    if key is None or signature is None:
        return False
    # Loaded when the first device knocks: a gateway without devices never pays for it.
    ed25519 = importlib.import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    invalid: type[Exception] = importlib.import_module("cryptography.exceptions").InvalidSignature
    public = ed25519.Ed25519PublicKey.from_public_bytes(key)
    for text in core.signed_texts(connect):
        try:
            public.verify(signature, text)
        except invalid:
            continue
        return True
    return False


def starting(retry_ms: int) -> Turned:
    """The answer to a connect while the gateway still starts."""
    details = {"reason": "startup-sidecars", "retryAfterMs": retry_ms}
    return Turned(Unavailable("gateway startup sidecars are not ready yet", details=details, retryable=True), 1013)


def malformed(fault: str) -> Turned:
    """The answer to a connect that does not fit its schema."""
    return Turned(UserError(f"invalid connect params: {fault}"))
