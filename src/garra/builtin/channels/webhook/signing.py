"""Signatures in the form of Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`.

What is signed is `id.timestamp.body` with HMAC-SHA256; a signature is `v1,` and base64. Several stand side by side with
a space between, so that a secret can be changed without a moment in which nothing fits.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256

from garra.core.value import frozen

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
PREFIX = "whsec_"
WINDOW_S = 300
"""How old, or how far ahead, a call may be."""
LEAST = 24
_ID_LENGTH, _MOST = 256, 16


class Unsigned(Exception):
    """The call does not show that it comes from who holds the secret. Its words are for the owner alone."""


@frozen
class Signed:
    """What the head of a call says of it: `signatures` are the values of those in the form `v1`."""

    id: str
    timestamp: int
    signatures: tuple[bytes, ...]


def key(secret: str) -> bytes:
    """The bytes of a secret. Raises ValueError, in words that do not show it."""
    try:
        found = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("is not base64") from None
    if len(found) < LEAST:
        raise ValueError(f"holds {len(found)} bytes; at least {LEAST} are needed")
    return found


def head(headers: Mapping[str, str], now_s: int) -> Signed:
    """What can be judged before the body is read. Raises Unsigned."""
    called, at = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    if not 0 < len(called) <= _ID_LENGTH or not called.isascii() or not called.isprintable():
        raise Unsigned(f"{ID} is missing or no id")
    if not (at.isascii() and at.isdigit() and len(at) < 15):
        raise Unsigned(f"{TIMESTAMP} is missing or no number of seconds")
    if abs(now_s - int(at)) > WINDOW_S:
        raise Unsigned(f"{TIMESTAMP} is more than {WINDOW_S} s off; does one side's clock go wrong?")
    listed = [part.partition(",") for part in headers.get(SIGNATURE, "").split(" ")[:_MOST]]
    signatures = tuple(value.encode() for version, _, value in listed if version == "v1" and value)
    if not signatures:
        raise Unsigned(f"{SIGNATURE} is missing or holds no v1")
    return Signed(called, int(at), signatures)


def verified(signed: Signed, body: bytes, keys: Sequence[bytes]) -> bool:
    """Whether one of the signatures is by one of the keys; all are looked at, whatever fits."""
    fits = False
    for each in keys:
        wanted = signature(each, signed.id, signed.timestamp, body).encode()
        for given in signed.signatures:
            fits |= hmac.compare_digest(given, wanted)
    return fits


def signature(by: bytes, called: str, timestamp: int, body: bytes) -> str:
    """One signature, without its version."""
    return base64.b64encode(hmac.digest(by, f"{called}.{timestamp}.".encode() + body, sha256)).decode()


def headers(called: str, timestamp: int, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """What a call of ours carries: a signature by each key, the newest first."""
    listed = " ".join(f"v1,{signature(each, called, timestamp, body)}" for each in keys)
    return {ID: called, TIMESTAMP: str(timestamp), SIGNATURE: listed}
