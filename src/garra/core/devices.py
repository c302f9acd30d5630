"""Paired devices: how a device proves itself, and what its knock at the door comes to.

A device is an Ed25519 key. Its id is the lower-case hex SHA-256 of the raw public key; it signs a text that holds the
challenge and all it asks for, so that nothing can be changed on the way or sent again. Whether the signature is good
is checked by whoever holds the crypto library; everything else is decided here, as functions of values.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from garra.core.frames import Connect
from garra.core.scopes import covers
from garra.core.value import frozen

SKEW_MS: Final = 120_000
TOKENS: Final = 4
"""So many tokens of one grant are good at once; the oldest goes first."""

Reason = Literal["not-paired", "role-upgrade", "scope-upgrade", "metadata-upgrade"]

NEEDS: Final[Mapping[Reason, str]] = {
    "not-paired": "device is not approved yet",
    "role-upgrade": "device is asking for a higher role than currently approved",
    "scope-upgrade": "device is asking for more scopes than currently approved",
    "metadata-upgrade": "device identity changed and must be re-approved",
}


@frozen
class Grant:
    """What a device may do in one role. `hashes` are of its tokens, newest last; none when revoked."""

    scopes: tuple[str, ...]
    hashes: tuple[str, ...] = ()
    created_at: int = 0
    rotated_at: int | None = None
    revoked_at: int | None = None


@frozen
class Device:
    """A paired device. `platform` and `family` are as they were when it was approved, lower case."""

    id: str
    public_key: str
    client_id: str
    client_mode: str
    platform: str = ""
    family: str = ""
    name: str = ""
    grants: Mapping[str, Grant] = field(default_factory=dict)
    approved_via: str = "owner"
    created_at: int = 0
    approved_at: int = 0
    seen_at: int | None = None


@frozen
class Pending:
    """A request to be paired, or to be allowed more, that waits for the owner."""

    request_id: str
    device_id: str
    public_key: str
    client_id: str
    client_mode: str
    role: str
    scopes: tuple[str, ...]
    platform: str = ""
    family: str = ""
    name: str = ""
    repair: bool = False
    at: int = 0


@frozen
class Knock:
    """A device whose signature is good, and what it asks for.

    `shared`: it also showed the gateway's own secret (or none is asked for). `local`: the peer is this machine,
    nothing in between. `hashes` are of the texts that may be its token; `named` is where they stood.
    """

    role: str
    scopes: tuple[str, ...]
    platform: str
    family: str
    shared: bool
    local: bool
    hashes: tuple[str, ...] = ()
    named: Literal["deviceToken", "token", "nothing"] = "nothing"


@frozen
class Pair:
    """Pair it, or widen its grant, without asking, and give it a new token."""

    reason: Reason


@frozen
class Welcome:
    """It may come in as it is; `by_token` when its own token did it."""

    by_token: bool


@frozen
class Ask:
    """The owner must approve it first."""

    reason: Reason


@frozen
class Reject:
    """It may not come in; `code` is for programs."""

    code: Literal["AUTH_TOKEN_MISSING", "AUTH_TOKEN_MISMATCH", "AUTH_DEVICE_TOKEN_MISMATCH", "AUTH_SCOPE_MISMATCH"]


Verdict = Pair | Welcome | Ask | Reject

Flaw = Literal["device-id-mismatch", "device-signature-stale", "device-nonce-missing", "device-nonce-mismatch"]


def raw(text: str) -> bytes | None:
    """The bytes of base64url text without padding; None when it is none."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None


def fingerprint(public_key: str) -> str | None:
    """The id of a public key given as base64url; None when it is no raw Ed25519 key."""
    key = raw(public_key)
    return hashlib.sha256(key).hexdigest() if key is not None and len(key) == 32 else None


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def plain(text: str | None) -> str:
    """Platform and device family as they are signed and compared: trimmed, ASCII letters lower."""
    trimmed = (text or "").strip()
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in trimmed)


def flaw(connect: Connect, nonce: str, now_ms: int) -> Flaw | None:
    """What is wrong with a device's claim apart from its signature."""
    device = connect.device
    assert device is not None
    if fingerprint(device.public_key) != device.id:
        return "device-id-mismatch"
    if abs(now_ms - device.signed_at) > SKEW_MS:
        return "device-signature-stale"
    if not device.nonce.strip():
        return "device-nonce-missing"
    if not hmac.compare_digest(device.nonce.strip().encode(), nonce.encode()):
        return "device-nonce-mismatch"
    return None


def signed_texts(connect: Connect) -> tuple[bytes, bytes]:
    """The texts whose signature is good, version 3 and version 2 (which lacks the last two fields)."""
    device, client, auth = connect.device, connect.client, connect.auth
    assert device is not None
    fields = (
        device.id,
        client.id,
        client.mode,
        connect.role,
        ",".join(connect.scopes),
        str(device.signed_at),
        auth.token or auth.device_token or auth.bootstrap_token or "",
        device.nonce.strip(),
    )
    third = ("v3", *fields, plain(client.platform), plain(client.device_family))
    return "|".join(third).encode(), "|".join(("v2", *fields)).encode()


def judge(knock: Knock, device: Device | None) -> Verdict:
    """What a knock comes to, given what is on record."""
    if knock.shared:
        reason = _lacking(knock, device)
        if reason is None:
            return Welcome(by_token=False)
        return Pair(reason) if knock.local else Ask(reason)
    return _by_token(knock, device)


def _by_token(knock: Knock, device: Device | None) -> Verdict:
    grant = device.grants.get(knock.role) if device else None
    if grant is None or device is None or not matches(grant, knock.hashes):
        codes: Mapping[str, Reject] = {
            "deviceToken": Reject("AUTH_DEVICE_TOKEN_MISMATCH"),
            "token": Reject("AUTH_TOKEN_MISMATCH"),
            "nothing": Reject("AUTH_TOKEN_MISSING"),
        }
        return codes[knock.named]
    if not covers(grant.scopes, knock.scopes):
        return Reject("AUTH_SCOPE_MISMATCH")
    if _changed(knock, device):
        return Ask("metadata-upgrade")
    return Welcome(by_token=True)


def matches(grant: Grant, hashes: tuple[str, ...]) -> bool:
    """Whether one of `hashes` is of a token of `grant`; compared in constant time."""
    found = False
    for kept in grant.hashes:
        for shown in hashes:
            found |= hmac.compare_digest(kept, shown)
    return found and grant.revoked_at is None


def _lacking(knock: Knock, device: Device | None) -> Reason | None:
    if device is None:
        return "not-paired"
    grant = device.grants.get(knock.role)
    if grant is None:
        return "role-upgrade"
    if grant.revoked_at is not None:
        return "not-paired"
    if not covers(grant.scopes, knock.scopes):
        return "scope-upgrade"
    return "metadata-upgrade" if _changed(knock, device) else None


def _changed(knock: Knock, device: Device) -> bool:
    family = knock.family and device.family and knock.family != device.family
    return knock.platform != device.platform or bool(family)


def wish(connect: Connect, scopes: tuple[str, ...]) -> Pending:
    """What a signed connect asks to be granted; without an id until it has to wait."""
    device, client = connect.device, connect.client
    assert device is not None
    return Pending(
        "",
        device.id,
        device.public_key,
        client.id,
        client.mode,
        connect.role,
        scopes,
        plain(client.platform),
        plain(client.device_family),
        client.display_name or "",
    )


def widened(grant: Grant | None, scopes: tuple[str, ...], token_hash: str, now_ms: int) -> Grant:
    """`grant` with `scopes` added and one new token; earlier tokens end when the rights grow."""
    if grant is None or grant.revoked_at is not None:
        return Grant(scopes, (token_hash,), now_ms)
    if covers(grant.scopes, scopes):
        return Grant(grant.scopes, (*grant.hashes, token_hash)[-TOKENS:], grant.created_at, grant.rotated_at)
    return Grant(tuple(dict.fromkeys((*grant.scopes, *scopes))), (token_hash,), grant.created_at, now_ms)
